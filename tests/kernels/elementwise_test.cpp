// The element-wise engine: dtypes, broadcasting, layouts, empty tensors; casts.
#include "lockstep/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/compare.h"
#include "lockstep/kernels/transcendental.h"
#include "support/expect_close.h"

namespace lockstep::kernels {
namespace {

using lockstep::testing::element;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const DType kAll[] = {kF32, kF64, kF16, kBF16, kI32, kI64, kU8, DType::kBool};

// 0, 1, 2, … modulo 7, in any dtype.
Tensor counting(const Shape& shape, DType dtype, int start = 0) {
  Tensor t = empty(shape, {.dtype = kF64});
  for (std::int64_t i = 0; i < t.numel(); ++i)
    t.data<double>()[i] = static_cast<double>((i * 5 + start) % 7);
  return cast(t, dtype);
}

Tensor f64s(std::initializer_list<double> v) { return tensor<double>(v); }

TEST(Elementwise, PromotionIsTorchs) {
  EXPECT_EQ(promote(kI64, kF16), kF16);
  EXPECT_EQ(promote(kF16, kBF16), kF32);
  EXPECT_EQ(promote(kF16, kF32), kF32);
  EXPECT_EQ(promote(kF32, kF64), kF64);
  EXPECT_EQ(promote(DType::kBool, kU8), kU8);
  EXPECT_EQ(promote(kU8, kI32), kI32);
  const Tensor i = arange(3), f = ones({}), h = ones({3}, {kF16});
  EXPECT_EQ(add(i, 2).dtype(), kI64);
  EXPECT_EQ(add(i, 2.5).dtype(), kF32);
  EXPECT_EQ(add(h, 2.5).dtype(), kF16);
  EXPECT_EQ(add(h, f).dtype(), kF16);  // a tensor without dimensions does not widen
  EXPECT_EQ(add(i, f).dtype(), kF32);
  EXPECT_EQ(div(i, i).dtype(), kF32);
  EXPECT_EQ(div(cast(i, DType::kBool), 2).dtype(), kF32);
  EXPECT_EQ(eq(i, f).dtype(), DType::kBool);
}

TEST(Elementwise, EveryPairOfDtypesAndLayoutsAgreesWithF64) {
  for (DType da : kAll) {
    for (DType db : kAll) {
      const Tensor base = counting({4, 3, 2}, da);
      const Tensor layouts[] = {base, base.permute({2, 1, 0}).contiguous().permute({2, 1, 0}),
                                counting({4, 6, 2}, da).slice(1, 0, 6, 2),
                                counting({1, 3, 1}, da).expand({4, 3, 2})};
      const Tensor others[] = {counting({4, 3, 2}, db, 3), counting({3, 1}, db, 3),
                               counting({}, db, 3), counting({4, 1, 2}, db, 1)};
      for (const Tensor& a : layouts) {
        for (const Tensor& b : others) {
          const Tensor sum = add(a, b), product = mul(a, b), less = lt(a, b), most = maximum(a, b);
          const Tensor wide_a = a.contiguous(), wide_b = b.expand(a.shape()).contiguous();
          for (std::int64_t i = 0; i < a.numel(); ++i) {
            const double x = element(wide_a, i), y = element(wide_b, i);
            if (sum.dtype() == DType::kBool) {
              ASSERT_EQ(element(sum, i), x + y > 0);
              ASSERT_EQ(element(product, i), x * y > 0);
            } else {
              ASSERT_EQ(element(sum, i), x + y) << dtype_name(da) << " " << dtype_name(db);
              ASSERT_EQ(element(product, i), x * y);
            }
            ASSERT_EQ(element(less, i), x < y);
            ASSERT_EQ(element(most, i), std::max(x, y));
          }
        }
      }
    }
  }
}

TEST(Elementwise, LongRunsWithConversionAndTail) {
  for (std::int64_t n : {1, 15, 1023, 1025, 70001}) {
    const Tensor a = counting({n}, kBF16), b = counting({n}, kF32, 2);
    const Tensor y = add(a, b);
    ASSERT_EQ(y.dtype(), kF32);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(y.data<float>()[i], static_cast<float>((i * 5) % 7 + (i * 5 + 2) % 7));
  }
}

TEST(Elementwise, ResultsDoNotDependOnThreads) {
  const Tensor x = sub(div(counting({300, 501}, kF32), 3.1), 1.0);
  set_num_threads(1);
  const Tensor one = gelu(x, GeluApproximation::kNone), row = add(x, x.slice(0, 0, 1));
  for (int threads : {2, 6}) {
    set_num_threads(threads);
    EXPECT_SAME_BITS(gelu(x, GeluApproximation::kNone), one);
    EXPECT_SAME_BITS(add(x, x.slice(0, 0, 1)), row);
  }
  set_num_threads(0);
}

TEST(Elementwise, ChannelsLastStays) {
  const Tensor x = counting({2, 3, 4, 5}, kF32).contiguous(MemoryFormat::kChannelsLast);
  const Tensor bias = counting({3, 1, 1}, kF32, 1);
  for (const Tensor& y : {add(x, bias), add(bias, x), relu(x), cast(x, kF16), lt(x, 3), exp(x)})
    EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_SAME_BITS(add(x, bias), add(x.contiguous(), bias));
}

TEST(Elementwise, EmptyTensors) {
  const Tensor none = empty({0, 3});
  EXPECT_EQ(add(none, ones({3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(add(none, none).shape(), (Shape{0, 3}));
  EXPECT_EQ(add(empty({0, 1}), ones({1, 5})).shape(), (Shape{0, 5}));
  EXPECT_EQ(exp(none).shape(), (Shape{0, 3}));
  EXPECT_EQ(cast(none, kI64).shape(), (Shape{0, 3}));
  EXPECT_NO_THROW(fill(none, 3));
  EXPECT_NO_THROW(add_into(none, none, 1.0));
}

TEST(Elementwise, IntegersWrap) {
  const Tensor big = full({1}, 200, {kU8});
  EXPECT_EQ(add(big, big).item<int>(), 144);
  const Tensor most = tensor<std::int64_t>({std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(add(most, 1).data<std::int64_t>()[0], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(mul(most, 2).data<std::int64_t>()[0], -2);
  EXPECT_EQ(pow(tensor<std::int64_t>({3}), 20).data<std::int64_t>()[0], 3486784401);
  EXPECT_THROW(pow(arange(3), -1), Error);
}

TEST(Elementwise, NanIsNeverHidden) {
  // pytorch/pytorch#1810: NaN counts as the greatest.
  const Tensor x = cast(f64s({kNan, 1, -2}), kF32), y = cast(f64s({1, kNan, 3}), kF32);
  EXPECT_CLOSE(maximum(x, y), f64s({kNan, kNan, 3}), 0, 0);
  EXPECT_CLOSE(minimum(x, y), f64s({kNan, kNan, -2}), 0, 0);
  EXPECT_CLOSE(relu(x), f64s({kNan, 1, 0}), 0, 0);
  EXPECT_CLOSE(clamp(x, -1, 0.5), f64s({kNan, 0.5, -1}), 0, 0);
  EXPECT_CLOSE(isnan(x), f64s({1, 0, 0}), 0, 0);
  EXPECT_CLOSE(isfinite(cast(f64s({kInf, -kInf, kNan, 1}), kBF16)), f64s({0, 0, 0, 1}), 0, 0);
  EXPECT_CLOSE(eq(x, x), f64s({0, 1, 1}), 0, 0);
  EXPECT_CLOSE(ne(x, x), f64s({1, 0, 0}), 0, 0);
}

TEST(Elementwise, WhereAndLogic) {
  const Tensor c = cast(f64s({1, 0, 1}), DType::kBool);
  EXPECT_CLOSE(where(c, arange(3), -1), f64s({0, -1, 2}), 0, 0);
  EXPECT_EQ(where(c, arange(3), -1).dtype(), kI64);
  EXPECT_CLOSE(logical_and(c, arange(3)), f64s({0, 0, 1}), 0, 0);
  EXPECT_CLOSE(logical_or(c, arange(3)), f64s({1, 1, 1}), 0, 0);
  EXPECT_CLOSE(logical_not(arange(3)), f64s({1, 0, 0}), 0, 0);
  EXPECT_THROW(where(arange(3), c, c), Error);
}

TEST(Cast, RoundsOnceToNearestEven) {
  // 1 + 2^-11 ties to 1 in f16; a little more in f64 goes up, though an f32 in between would hide
  // it.
  EXPECT_EQ(cast(f64s({1 + 0x1p-11}), kF16).item(), 1);
  EXPECT_EQ(cast(f64s({1 + 0x1p-11 + 0x1p-40}), kF16).item(), 1 + 0x1p-10);
  EXPECT_EQ(cast(f64s({1 + 3 * 0x1p-11}), kF16).item(), 1 + 0x1p-9);
  EXPECT_EQ(cast(f64s({1 + 0x1p-8 + 0x1p-45}), kBF16).item(), 1 + 0x1p-7);
  EXPECT_EQ(cast(f64s({65519.99}), kF16).item(), 65504);
  EXPECT_EQ(cast(f64s({65520}), kF16).item(), kInf);
  EXPECT_EQ(cast(f64s({0x1p-24}), kF16).item(), 0x1p-24);
  EXPECT_EQ(cast(f64s({0x1p-25}), kF16).item(), 0);
}

TEST(Cast, EveryHalfGoesThroughF32AndBack) {
  for (DType half : {kF16, kBF16}) {
    Tensor x = empty({65536}, {half});
    auto* bits = static_cast<std::uint16_t*>(x.data());
    for (int i = 0; i < 65536; ++i) bits[i] = static_cast<std::uint16_t>(i);
    const Tensor wide = cast(x, kF32), back = cast(wide, half);
    const Tensor strided = cast(x.view({256, 256}).t(), kF32).t().contiguous().view({65536});
    const auto* again = static_cast<const std::uint16_t*>(back.data());
    for (int i = 0; i < 65536; ++i) {
      const double exact = element(x, i);
      ASSERT_TRUE(std::isnan(exact) ? std::isnan(wide.data<float>()[i])
                                    : wide.data<float>()[i] == exact);
      ASSERT_TRUE(std::isnan(exact) ? std::isnan(strided.data<float>()[i])
                                    : strided.data<float>()[i] == exact);
      ASSERT_TRUE(std::isnan(exact) || again[i] == bits[i]);
    }
  }
}

TEST(Cast, FloatingToIntegerSaturates) {
  const Tensor x = f64s({-kInf, -1.9, kNan, 3.9, 1e30});
  EXPECT_CLOSE(cast(x, kU8), f64s({0, 0, 0, 3, 255}), 0, 0);
  EXPECT_CLOSE(cast(x, kI32), f64s({-2147483648.0, -1, 0, 3, 2147483647.0}), 0, 0);
  EXPECT_CLOSE(cast(x, DType::kBool), f64s({1, 1, 1, 1, 1}), 0, 0);
  EXPECT_EQ(cast(x, kI64).data<std::int64_t>()[4], std::numeric_limits<std::int64_t>::max());
  EXPECT_CLOSE(cast(tensor<std::int64_t>({257, -1}), kU8), f64s({1, 255}), 0, 0);
}

TEST(Copy, BroadcastsConvertsAndBumpsTheVersion) {
  Tensor dst = zeros({2, 3}, {kF16});
  const auto before = dst.version();
  copy_into(dst.t(), tensor<std::int64_t>({1, 2}));
  EXPECT_GT(dst.version(), before);
  EXPECT_CLOSE(dst, tensor<float>({1, 1, 1, 2, 2, 2}, {2, 3}), 0, 0);
  copy_into(dst, dst.slice(0, 1, 2));
  EXPECT_CLOSE(dst, tensor<float>({2, 2, 2, 2, 2, 2}, {2, 3}), 0, 0);
  EXPECT_THROW(copy_into(dst, zeros({4})), Error);
  fill(dst.slice(1, 0, 3, 2), 7);
  EXPECT_CLOSE(dst, tensor<float>({7, 2, 7, 7, 2, 7}, {2, 3}), 0, 0);
}

}  // namespace
}  // namespace lockstep::kernels
