// New tensors, foreign memory, elements, and what layouts are called.
#include "lockstep/core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/error.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep::testing {
namespace {

constexpr DType kAll[] = {kF32, kF64, kF16, kBF16, kI32, kI64, kU8, kBool};

TEST(DType, TablesAgreeWithTheTypes) {
  const char* names[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
  int floating = 0;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(dtype_name(kAll[i]), names[i]);
    floating += is_floating(kAll[i]);
    visit_dtype(kAll[i], [&]<class T>() {
      EXPECT_EQ(kDTypeOf<T>, kAll[i]);
      EXPECT_EQ(sizeof(T), dtype_size(kAll[i]));
      EXPECT_EQ(is_floating(kAll[i]), !std::is_integral_v<T>);
      EXPECT_GE(sizeof(Accumulator<T>), sizeof(T));
    });
  }
  EXPECT_EQ(floating, 4);
  EXPECT_HOLDS(message_of<Error>([] { visit_floating(kU8, "softmax", []<class T>() {}); }),
               "softmax: expected a floating dtype (f32, f64, f16, bf16) but got u8");
}

TEST(Tensor, IsUndefinedUntilItHasStorage) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.version(), 0u);
  EXPECT_THROW(none.item(), Error);
  EXPECT_THROW(none.data<double>(), Error);
  EXPECT_THROW(none.clone(), Error);
  EXPECT_THROW(none.view({1}), Error);
  EXPECT_THROW(none.reshape({1}), Error);
  EXPECT_THROW(none.expand({2}), Error);
  EXPECT_THROW(none.unsqueeze(0), Error);
  EXPECT_THROW(none.as_strided({1}, {1}, 0), Error);
  EXPECT_THROW(zero_(none), Error);
  EXPECT_THROW(copy_elements(ones({}), none), Error);
  EXPECT_THROW(empty_like(none), Error);
}

TEST(Tensor, IsMadeInEveryDtype) {
  for (DType dtype : kAll) {
    const Tensor one = ones({2, 3}, {.dtype = dtype}), zero = zeros({2, 3}, {.dtype = dtype});
    EXPECT_EQ(one.nbytes(), 6 * dtype_size(dtype));
    EXPECT_EQ(one.storage()->bytes(), one.nbytes());
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(element(one, i), 1) << dtype_name(dtype);
      EXPECT_EQ(element(zero, i), 0) << dtype_name(dtype);
    }
    EXPECT_EQ(zeros_like(one).dtype(), dtype);
    EXPECT_EQ(empty_like(one, kF64).dtype(), kF64);
  }
  EXPECT_CLOSE(arange(4, -1), tensor<std::int64_t>({-1, 0, 1, 2}), 0, 0);
  EXPECT_EQ(arange(0).numel(), 0);
  EXPECT_THROW(arange(-1), Error);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor(std::vector<double>{1, 2, 3, 4}, {2, 2}).shape(), (Shape{2, 2}));
  EXPECT_HOLDS(message_of<Error>([] { tensor({1.f, 2.f, 3.f}, {2, 2}); }), "3 values");
}

TEST(Tensor, FullRefusesWhatAnIntegerCannotHold) {
  EXPECT_EQ(full({}, 255, {.dtype = kU8}).item(), 255);
  EXPECT_EQ(full({}, -0.75, {.dtype = kU8}).item(), 0);
  EXPECT_EQ(full({}, -2147483648.0, {.dtype = kI32}).item(), -2147483648.0);
  EXPECT_EQ(full({}, -0x1p63, {.dtype = kI64}).item(), -0x1p63);
  EXPECT_EQ(full({}, 0.5, {.dtype = kBool}).item(), 1);
  EXPECT_TRUE(std::isinf(full({}, 1e6, {.dtype = kF16}).item()));
  for (double value : {256.0, -1.0, std::nan(""), 1e300})
    EXPECT_THROW(full({1}, value, {.dtype = kU8}), Error) << value;
  EXPECT_THROW(full({1}, 2147483648.0, {.dtype = kI32}), Error);
  EXPECT_HOLDS(message_of<Error>([] { full({1}, 0x1p63, {.dtype = kI64}); }), "i64");
}

TEST(Tensor, SizesAreCheckedBeforeMemoryIsTaken) {
  EXPECT_THROW(empty({2, -1}), Error);
  EXPECT_THROW(empty({std::int64_t{1} << 61}, {.dtype = kF64}), OutOfMemoryError);
  EXPECT_THROW(empty({std::int64_t{1} << 32, std::int64_t{1} << 32}), Error);
  EXPECT_THROW(empty({2}, {.device = {DeviceType::kCuda, 0}}), Error);
  EXPECT_EQ(empty({0, std::int64_t{1} << 40, std::int64_t{1} << 40}).nbytes(), 0u);
  // A handle can have more elements than any memory: an expanded one.
  const Tensor wide = ones({1}, {.dtype = kF64}).expand({std::int64_t{1} << 61});
  EXPECT_THROW(wide.clone(), OutOfMemoryError);
}

TEST(Tensor, ItemReadsTheOneElement) {
  EXPECT_EQ(full({1, 1}, 2.5).item<float>(), 2.5f);
  EXPECT_EQ(tensor<std::uint8_t>({7}).item<int>(), 7);
  EXPECT_EQ(arange(5).select(0, 3).item<std::int64_t>(), 3);
  EXPECT_HOLDS(message_of<Error>([] { ones({2, 3}).item(); }), "(2, 3)");
  EXPECT_THROW(empty({0}).item(), Error);
  const std::string wrong = message_of<Error>([] { ones({2}).data<double>(); });
  EXPECT_HOLDS(wrong, "f64");
  EXPECT_HOLDS(wrong, "f32");
}

// Every whole number of every dtype comes back as it is, also where a double would round it
// (2^53 + 1), in any type that holds it.
TEST(Tensor, ItemOfWholeNumbersIsExact) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t value :
       {kLeast, kLeast + 1, -(std::int64_t{1} << 53) - 1, std::int64_t{-1}, std::int64_t{0},
        (std::int64_t{1} << 53) + 1, kMost - 1, kMost}) {
    const Tensor one = tensor<std::int64_t>({value});
    EXPECT_EQ(one.item<std::int64_t>(), value);
    EXPECT_EQ(one.item<bool>(), value != 0);
    EXPECT_EQ(one.item(), static_cast<double>(value));
    EXPECT_EQ(one.item<float>(), static_cast<float>(value));
    if (value >= 0) {
      EXPECT_EQ(one.item<std::uint64_t>(), static_cast<std::uint64_t>(value));
    } else {
      EXPECT_THROW(one.item<std::uint64_t>(), Error) << value;
    }
    if (value != -1 && value != 0) {
      EXPECT_THROW(one.item<std::int32_t>(), Error) << value;
    }
  }
  // One rounding, not two: by way of a double this one would become a tie, and fall to 2^60.
  constexpr std::int64_t kAboveTie = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  EXPECT_EQ(tensor<std::int64_t>({kAboveTie}).item<float>(), 0x1.000002p60f);
  EXPECT_EQ(tensor<std::int32_t>({-2147483647 - 1}).item<int>(), -2147483647 - 1);
  EXPECT_EQ(tensor<std::uint8_t>({255}).item<std::uint8_t>(), 255);
  EXPECT_THROW(tensor<std::uint8_t>({255}).item<std::int8_t>(), Error);
  EXPECT_EQ(tensor({true}).item<int>(), 1);
}

TEST(Tensor, ItemOfRealNumbersIsCutToWholeOnesThatFit) {
  EXPECT_EQ(full({}, -2.75).item<int>(), -2);
  EXPECT_EQ(full({}, -0.5).item<std::uint8_t>(), 0);
  EXPECT_EQ(full({}, 255.5).item<std::uint8_t>(), 255);
  EXPECT_EQ(full({}, -128.5, {.dtype = kF64}).item<std::int8_t>(), -128);
  EXPECT_EQ(full({}, -0x1p63, {.dtype = kF64}).item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(full({}, 0x1.fffffep63).item<std::uint64_t>(), 0xffffff0000000000u);
  EXPECT_TRUE(full({}, 0.25, {.dtype = kF16}).item<bool>());
  const std::string message = message_of<Error>([] { full({}, 256).item<std::uint8_t>(); });
  EXPECT_HOLDS(message, "256");
  EXPECT_HOLDS(message, "unsigned integers of 8 bits");
  EXPECT_THROW(full({}, 0x1p63).item<std::int64_t>(), Error);
  EXPECT_THROW(full({}, -1).item<std::uint64_t>(), Error);
  EXPECT_THROW(full({}, -129, {.dtype = kF64}).item<std::int8_t>(), Error);
  EXPECT_THROW(full({}, NAN).item<int>(), Error);
  EXPECT_THROW(full({}, INFINITY).item<std::int64_t>(), Error);
  EXPECT_TRUE(std::isnan(full({}, NAN).item<float>()));
  EXPECT_EQ(full({}, 1e300, {.dtype = kF64}).item<float>(), INFINITY);
}

TEST(Layout, ContiguousInOneWayOrBoth) {
  const Tensor plain = ones({2, 3, 4, 5});
  const Tensor last = ones({2, 3, 4, 5}, {.format = MemoryFormat::kChannelsLast});
  EXPECT_TRUE(plain.is_contiguous());
  EXPECT_FALSE(plain.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FALSE(last.is_contiguous());
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(plain.suggested_format(), MemoryFormat::kContiguous);
  EXPECT_EQ(last.suggested_format(), MemoryFormat::kChannelsLast);
  EXPECT_EQ(empty_like(last).strides(), last.strides());
  // One channel, or one pixel: both at once.
  for (const Shape& shape : {Shape{2, 1, 4, 5}, Shape{2, 3, 1, 1}}) {
    const Tensor both = ones(shape, {.format = MemoryFormat::kChannelsLast});
    EXPECT_TRUE(both.is_contiguous());
    EXPECT_TRUE(both.is_contiguous(MemoryFormat::kChannelsLast));
    EXPECT_EQ(both.suggested_format(), MemoryFormat::kContiguous);
  }
  // The format is for images only.
  EXPECT_TRUE(ones({2, 3}, {.format = MemoryFormat::kChannelsLast}).is_contiguous());
  EXPECT_FALSE(ones({2, 3}).is_contiguous(MemoryFormat::kChannelsLast));
}

TEST(Layout, WithoutElementsEverythingIsContiguousAndDense) {
  for (const Shape& shape : {Shape{0}, Shape{3, 0, 2}, Shape{2, 0}}) {
    const Tensor t = ones({4, 5, 6}).as_strided(shape, Shape::filled(shape.rank(), 7), 0);
    EXPECT_TRUE(t.is_contiguous()) << shape.str();
    EXPECT_TRUE(t.is_dense());
    EXPECT_EQ(t.clone().shape(), shape);
  }
}

TEST(Layout, DenseIsAnyOrderOfAxesWithoutGapsOrOverlaps) {
  const Tensor t = ones({2, 3, 4});
  EXPECT_TRUE(t.permute({2, 0, 1}).is_dense());
  EXPECT_TRUE(t.permute({1, 0, 2}).unsqueeze(1).is_dense());
  EXPECT_TRUE(ones({}).is_dense());
  EXPECT_TRUE(t.slice(0, 1, 2).is_dense());
  EXPECT_FALSE(t.slice(1, 0, 2).is_dense());
  EXPECT_FALSE(t.slice(2, 0, 4, 2).is_dense());
  EXPECT_FALSE(ones({3, 1}).expand({3, 2}).is_dense());
  EXPECT_FALSE(t.as_strided({3, 3}, {1, 1}, 0).is_dense());
  EXPECT_EQ(empty_like(t.slice(2, 0, 4, 2)).strides(), (Strides{6, 2, 1}));
}

// Memory of the caller (garbage in a tensor made from a local vector: pytorch/pytorch#17537).
Tensor from_a_local_vector() {
  const std::vector<float> local{1, 2, 3};
  return tensor(local);
}

TEST(ForeignMemory, AVectorIsCopied) {
  const Tensor t = from_a_local_vector();
  for (int i = 0; i < 1000; ++i) full({3}, i);
  EXPECT_CLOSE(t, tensor({1.f, 2.f, 3.f}), 0, 0);
}

TEST(ForeignMemory, IsSeenThroughAndReleasedOnce) {
  int released = 0;
  void* seen = nullptr;
  auto* memory = new float[6]{0, 1, 2, 3, 4, 5};
  Tensor view;
  {
    const Tensor t = from_blob(memory, {2, 3}, kF32, [&](void* p) {
      ++released;
      seen = p;
      delete[] static_cast<float*>(p);
    });
    memory[4] = 40;
    EXPECT_EQ(element(t, 4), 40);
    view = t.select(0, 1).slice(0, 1, 3);
  }
  EXPECT_EQ(released, 0);
  EXPECT_EQ(element(view, 0), 40);
  view = Tensor();
  EXPECT_EQ(released, 1);
  EXPECT_EQ(seen, memory);
}

template <class V>
concept CanBeViewed = requires(V&& values) {
  from_blob(std::forward<V>(values), Shape{1});
};

TEST(ForeignMemory, ATemporaryCannotBeViewed) {
  static_assert(CanBeViewed<std::vector<float>&>);
  static_assert(!CanBeViewed<std::vector<float>>);
  std::vector<std::int64_t> values{4, 5};
  const Tensor t = from_blob(values, {2});
  t.data<std::int64_t>()[1] = 6;
  EXPECT_EQ(values[1], 6);
}

TEST(ForeignMemory, ShapesAreChecked) {
  float one = 1;
  EXPECT_THROW(from_blob(nullptr, {1}, kF32), Error);
  EXPECT_EQ(from_blob(nullptr, {0, 3}, kF32).numel(), 0);
  EXPECT_THROW(from_blob(&one, {-1}, kF32), Error);
  EXPECT_THROW(from_blob(&one, {std::int64_t{1} << 62, 2}, kF32), Error);
}

}  // namespace
}  // namespace lockstep::testing
