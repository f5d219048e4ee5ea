// Tensors on every device: made, copied between layouts and devices, read back.
#include <gtest/gtest.h>

#include "lockstep/core/config.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/pinned_memory.h"
#include "lockstep/core/random.h"
#include "support/device.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep {
namespace {

using testing::message_of;

class DeviceTensor : public testing::DeviceTest {};

Tensor counted(const Shape& shape) { return arange(shape.numel()).view(shape); }

TEST_P(DeviceTensor, GoesThereAndComesBack) {
  const Tensor x = tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor there = to_device(x);
  EXPECT_EQ(there.device(), device());
  EXPECT_EQ(there.to(device()).data(), there.data());  // no copy
  EXPECT_SAME_BITS(to_host(there), x);
}

TEST_P(DeviceTensor, KeepsADenseLayout) {
  const Tensor x = counted({2, 3, 4, 5}).contiguous(MemoryFormat::kChannelsLast);
  const Tensor there = to_device(x);
  EXPECT_EQ(there.strides(), x.strides());
  EXPECT_SAME_BITS(to_host(there), x);
}

TEST_P(DeviceTensor, ViewsTravelInAnyLayout) {
  const Tensor x = counted({4, 6, 5});
  const Tensor there = to_device(x);
  EXPECT_SAME_BITS(to_host(there.slice(1, 1, 6, 2)), x.slice(1, 1, 6, 2));
  EXPECT_SAME_BITS(to_host(there.permute({2, 0, 1}).contiguous()), x.permute({2, 0, 1}));
  EXPECT_SAME_BITS(to_host(there.select(0, 2).t()), x.select(0, 2).t());
  EXPECT_SAME_BITS(to_host(there.select(2, 3).unsqueeze(0).expand({3, 4, 6}).clone()),
                   x.select(2, 3).unsqueeze(0).expand({3, 4, 6}));
}

TEST_P(DeviceTensor, TransposedCopiesOfEveryWidth) {
  for (DType dtype : {kU8, kBF16, kF32, kF64}) {
    Tensor x = empty({3, 50, 2, 70}, {dtype});
    char* bytes = static_cast<char*>(x.data());
    for (std::size_t i = 0; i < x.nbytes(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
    const Tensor there = to_device(x);
    for (std::initializer_list<int> axes :
         {std::initializer_list<int>{0, 3, 2, 1}, {3, 2, 0, 1}, {2, 3, 0, 1}, {1, 3, 0, 2}})
      EXPECT_SAME_BITS(to_host(there.permute(axes).contiguous()), x.permute(axes).contiguous());
    EXPECT_SAME_BITS(to_host(there.select(2, 1).slice(1, 1, 50).transpose(1, 2).contiguous()),
                     x.select(2, 1).slice(1, 1, 50).transpose(1, 2).contiguous());
    EXPECT_SAME_BITS(to_host(there.contiguous(MemoryFormat::kChannelsLast)), x);
  }
}

TEST_P(DeviceTensor, CopiesIntoViews) {
  for (DType dtype : {kU8, kF16, kF32, kI64}) {
    Tensor target = zeros({3, 8}, {dtype, device()}), wanted = zeros({3, 8}, {dtype});
    Tensor source = full({3, 4}, 7, {dtype});
    copy_elements(target.slice(1, 0, 8, 2), source);
    copy_elements(wanted.slice(1, 0, 8, 2), source);
    copy_elements(target.slice(1, 1, 8, 2), to_device(source));
    copy_elements(wanted.slice(1, 1, 8, 2), source);
    EXPECT_SAME_BITS(to_host(target), wanted);
    Tensor back = zeros({4, 3}, {dtype});
    copy_elements(back.t(), target.slice(1, 0, 4));
    EXPECT_SAME_BITS(back.t().contiguous(), wanted.slice(1, 0, 4));
  }
}

TEST_P(DeviceTensor, AreFilled) {
  EXPECT_SAME_BITS(to_host(zeros({5, 7}, {kF32, device()})), zeros({5, 7}));
  EXPECT_SAME_BITS(to_host(full({33}, 2.5, {kBF16, device()})), full({33}, 2.5, {kBF16}));
  EXPECT_SAME_BITS(to_host(ones({3}, {kBool, device()})), ones({3}, {kBool}));
  EXPECT_SAME_BITS(to_host(full({3}, -4, {kF64, device()})), full({3}, -4, {kF64}));
  EXPECT_SAME_BITS(to_host(arange(5, 3, device())), arange(5, 3));
  Tensor x = ones({4, 4}, {kI32, device()}), wanted = ones({4, 4}, {kI32});
  zero_(x.slice(1, 1, 3));
  zero_(wanted.slice(1, 1, 3));
  EXPECT_SAME_BITS(to_host(x), wanted);
}

TEST_P(DeviceTensor, RandomNumbersAreTheCpus) {
  Generator here(11), there(11);
  EXPECT_SAME_BITS(to_host(randn({37}, there, {kF32, device()})), randn({37}, here));
  Tensor x = empty({2, 3, 4, 5}, {kF16, device(), MemoryFormat::kChannelsLast});
  Tensor wanted = empty({2, 3, 4, 5}, {kF16});
  uniform_(x, -1, 1, there);
  uniform_(wanted, -1, 1, here);
  EXPECT_SAME_BITS(to_host(x), wanted);
}

TEST_P(DeviceTensor, ItemReadsOne) {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  EXPECT_EQ(to_device(tensor<std::int64_t>({large}, {})).item<std::int64_t>(), large);
  EXPECT_EQ(to_device(tensor<float>({1, 2.5f, 3})).select(0, 1).item(), 2.5);
}

TEST_P(DeviceTensor, NothingIsSomethingToo) {
  EXPECT_EQ(to_host(to_device(empty({0, 3}))).shape(), (Shape{0, 3}));
  EXPECT_EQ(zeros({2, 0}, {kF32, device()}).permute({1, 0}).contiguous().numel(), 0);
}

TEST_P(DeviceTensor, PinnedMemoryNeedsNoWait) {
  const Tensor x = pin_memory(counted({1000}));
  EXPECT_TRUE(is_pinned(x) || cuda_device_count() == 0);
  const Tensor there = x.to(device(), true);
  Tensor back = empty_pinned({1000}, kI64);
  copy_elements(back, there, true);
  if (device().is_cuda()) Stream::default_of(device()).synchronize();
  EXPECT_SAME_BITS(back, counted({1000}));
}

LOCKSTEP_ON_ALL_DEVICES(DeviceTensor);

class CudaTensor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device, real or virtual";
  }
};

TEST_F(CudaTensor, TheHostDoesNotReadDeviceMemory) {
  const Tensor x = zeros({2, 3}, {kF32, cuda_device()});
  EXPECT_EQ(message_of<Error>([&] { x.data<float>(); }),
            "data: the host asked for the elements of a tensor f32 (2, 3) on cuda:0; use to(kCpu)");
}

TEST_F(CudaTensor, TwoDevicesExchangeWithoutAWait) {
  if (cuda_device_count() < 2) GTEST_SKIP() << "one CUDA device only";
  const Tensor x = counted({50, 60});
  const Tensor first = x.to(cuda_device(0));
  const Tensor second = first.t().to(cuda_device(1));
  EXPECT_EQ(second.device(), cuda_device(1));
  EXPECT_SAME_BITS(second.to(kCpu), x.t());
  EXPECT_EQ(current_cuda_device(), cuda_device(0));
}

TEST(Device, IsNamed) {
  EXPECT_EQ(parse_device("cpu"), kCpu);
  EXPECT_EQ(cuda_device(1).str(), "cuda:1");
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda1", "cuda:999"})
    EXPECT_EQ(message_of<Error>([&] { parse_device(bad); }),
              std::string("device: expected \"cpu\", \"cuda\" or \"cuda:<index>\" but got \"") +
                  bad + "\"");
}

TEST(Device, ThatIsNotThereIsSaid) {
  const int count = cuda_device_count();
  const std::string said = message_of<Error>([&] { parse_device("cuda:99"); });
  EXPECT_HOLDS(said, std::string("device: cuda:99 was asked for, but ") +
                         (kHasCuda ? "there" : "this build of Lockstep has no CUDA"));
  if (count > 0) {
    EXPECT_EQ(parse_device("cuda"), cuda_device(0));
    EXPECT_HOLDS(said, "there are " + std::to_string(count) + " CUDA devices");
  } else {
    EXPECT_THROW(parse_device("cuda"), Error);
  }
  EXPECT_THROW(zeros({3}, {kF32, cuda_device(99)}), Error);
}

}  // namespace
}  // namespace lockstep
