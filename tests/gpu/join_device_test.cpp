// Tensors put side by side, borders, and copies of views, on every device bit for bit as on the
// CPU.
#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/core/stream.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/join.h"
#include "support/device.h"
#include "support/expect_close.h"

namespace lockstep::kernels {
namespace {

class JoinOnDevice : public testing::DeviceTest {
 protected:
  Tensor random(const Shape& shape, DType dtype = kF32) {
    return cast(randn(shape, generator_), dtype);
  }
  void expect_cat(const std::vector<Tensor>& parts, std::int64_t axis) const {
    std::vector<Tensor> far;
    for (const Tensor& part : parts) far.push_back(to_device(part));
    expect_cat(parts, far, axis);
  }
  void expect_cat(const std::vector<Tensor>& parts, const std::vector<Tensor>& far,
                  std::int64_t axis) const {
    const Tensor wanted = cat(parts, axis), got = cat(far, axis);
    EXPECT_EQ(got.device(), device());
    EXPECT_EQ(got.dtype(), wanted.dtype());
    EXPECT_EQ(got.strides(), wanted.strides());
    EXPECT_SAME_BITS(to_host(got), wanted);
  }
  void expect_pad(const Tensor& x, const Tensor& far, const Shape& borders, double value) const {
    const Tensor wanted = pad(x, borders, value), got = pad(far, borders, value);
    EXPECT_EQ(got.device(), device());
    EXPECT_EQ(got.strides(), wanted.strides());
    EXPECT_SAME_BITS(to_host(got), wanted);
    EXPECT_SAME_BITS(to_host(unpad(got, borders)), x);
  }

  Generator generator_{9};
};

TEST_P(JoinOnDevice, CatAlongEveryAxis) {
  for (DType dtype : {kF32, kF64, kF16, kBF16})
    for (int axis = -3; axis < 3; ++axis) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " axis " + std::to_string(axis));
      Shape first{3, 5, 7}, second{3, 5, 7};
      second[(axis + 3) % 3] = 9;
      expect_cat({random(first, dtype), random(second, dtype), random(first, dtype)}, axis);
    }
  expect_cat({random({33}), random({1}), random({257})}, 0);
}

TEST_P(JoinOnDevice, NeitherWaitsForTheDevice) {
  const Tensor x = to_device(random({3, 4}));
  const std::uint64_t waits = host_synchronizations();
  pad(x, {1, 1}, 2.5);
  fill(x, 3);
  cat(std::vector<Tensor>{x, x}, 0);
  EXPECT_EQ(host_synchronizations(), waits);
  EXPECT_SAME_BITS(to_host(x), full({3, 4}, 3));
}

TEST_P(JoinOnDevice, CatOfOtherTypes) {
  const Tensor big = tensor<std::int64_t>({9007199254740993, -1, 3});  // beyond f64's 53 bits
  expect_cat({big, big}, 0);
  expect_cat({full({3}, 2, {kU8}), full({4}, 255, {kU8})}, 0);
  expect_cat({random({3}, kF16), random({5}, kF32)}, 0);
  expect_cat({random({3}, kF16), random({5}, kBF16)}, 0);
  expect_cat({full({3}, 7, {kI64}), random({5}, kBF16)}, 0);
}

TEST_P(JoinOnDevice, CatKeepsLayoutsAndReadsViews) {
  const auto last = MemoryFormat::kChannelsLast;
  const Tensor a = random({2, 3, 5, 4}), b = random({2, 6, 5, 4});
  expect_cat({a.contiguous(last), b.contiguous(last)}, 1);
  expect_cat({a.contiguous(last), b}, 1);
  expect_cat({a, b.contiguous(last)}, 1);
  const Tensor x = random({40, 36}), there = to_device(x);
  expect_cat({x.t(), x.slice(0, 1, 37)}, {there.t(), there.slice(0, 1, 37)}, 1);
  expect_cat({x.slice(1, 1, 35, 2), x.slice(1, 3, 20)},
             {there.slice(1, 1, 35, 2), there.slice(1, 3, 20)}, 1);
  expect_cat({x, x, x.slice(1, 0, 1)}, {there, there, there.slice(1, 0, 1)}, 1);
}

TEST_P(JoinOnDevice, CatOfNothing) {
  expect_cat({random({0, 3}), random({2, 3}), random({0, 3})}, 0);
  expect_cat({random({0, 3}), random({0, 3})}, 0);
  expect_cat({random({2, 0}), random({2, 0})}, 1);
  expect_cat({random({4, 3})}, 0);
}

TEST_P(JoinOnDevice, Pad) {
  for (DType dtype : {kF32, kF64, kF16, kBF16}) {
    SCOPED_TRACE(std::string(dtype_name(dtype)));
    const Tensor x = random({2, 3, 5, 4}, dtype), far = to_device(x);
    for (const Shape& borders : {Shape{1, 2}, Shape{0, 3, 2, 0}, Shape{1, 1, 1, 1, 0, 2},
                                 Shape{0, 1, 1, 0, 2, 0, 0, 1}, Shape{0, 0}, Shape{}})
      expect_pad(x, far, borders, -1.25);
    const Tensor nhwc = x.contiguous(MemoryFormat::kChannelsLast);
    expect_pad(nhwc, to_device(nhwc), {1, 2, 3, 0}, 0.1);
    expect_pad(x.permute({3, 1, 0, 2}), far.permute({3, 1, 0, 2}), {1, 0, 0, 2}, 3);
    expect_pad(x.slice(3, 1, 4, 2), far.slice(3, 1, 4, 2), {2, 1}, 0);
  }
  const Tensor counts = tensor<std::int64_t>({9007199254740993, 4});
  expect_pad(counts, to_device(counts), {1, 1}, -7);
  const Tensor none = random({0, 3});
  expect_pad(none, to_device(none), {1, 1, 1, 2}, 5);
  expect_pad(none, to_device(none), {0, 0}, 5);
}

TEST_P(JoinOnDevice, TwoDevicesAreRefused) {
  if (device().is_cpu()) GTEST_SKIP() << "there is only one CPU";
  const Tensor x = random({2, 3});
  EXPECT_THROW(cat(std::vector<Tensor>{to_device(x), x}, 0), Error);
  EXPECT_THROW(cat(std::vector<Tensor>{x, to_device(x)}, 0), Error);
}

LOCKSTEP_ON_ALL_DEVICES(JoinOnDevice);

}  // namespace
}  // namespace lockstep::kernels
