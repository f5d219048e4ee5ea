// Sums, extrema, moments and norms on every device, against f64 on the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/core/random.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/extremum.h"
#include "lockstep/kernels/moments.h"
#include "lockstep/kernels/sum.h"
#include "support/device.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using namespace kernels;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ReductionOnDevice : public testing::DeviceTest {
 protected:
  static Tensor noise(const Shape& shape, DType dtype = kF32) {
    Generator generator(11);
    return cast(randn(shape, generator), dtype);
  }
  static Shape axes_of(unsigned set) {
    Shape axes;
    for (int i = 0; i < kMaxRank; ++i)
      if (set >> i & 1) axes.push_back(i);
    return axes;
  }
  static double epsilon(DType dtype) {
    return dtype == kF64 ? 1e-14 : dtype == kF32 ? 1e-6 : dtype == kF16 ? 1e-3 : 8e-3;
  }
  // `there` holds x's elements in some layout.
  void expect_sums_and_extrema(const Tensor& x, const Tensor& there, const Shape& axes) const {
    const Tensor exact = cast(x, kF64);
    const double tolerance = epsilon(x.dtype());
    const Tensor y = sum(there, axes);
    EXPECT_EQ(y.device(), device());
    EXPECT_EQ(y.dtype(), x.dtype());
    const double scale = std::sqrt(static_cast<double>(x.numel()));
    EXPECT_CLOSE(cast(to_host(y), kF64), sum(exact, axes), tolerance, tolerance * scale);
    EXPECT_CLOSE(cast(to_host(mean(there, axes, true)), kF64), mean(exact, axes, true), tolerance,
                 tolerance);
    EXPECT_SAME_BITS(to_host(amax(there, axes)), amax(x, axes));
    EXPECT_SAME_BITS(to_host(amin(there, axes, true)), amin(x, axes, true));
  }
};

TEST_P(ReductionOnDevice, EverySetOfAxesInEveryLayout) {
  for (const Shape& shape : {Shape{3, 5, 7, 6}, Shape{2, 24, 3, 8}}) {
    const Tensor x = noise(shape);
    const Tensor there = to_device(x);
    for (unsigned set = 1; set < 16; ++set) {
      SCOPED_TRACE(axes_of(set).str());
      expect_sums_and_extrema(x, there, axes_of(set));
      expect_sums_and_extrema(x, there.contiguous(MemoryFormat::kChannelsLast), axes_of(set));
      expect_sums_and_extrema(x.transpose(0, 3), there.transpose(0, 3), axes_of(set));
      expect_sums_and_extrema(x.slice(2, 0, 3, 2), there.slice(2, 0, 3, 2), axes_of(set));
      expect_sums_and_extrema(x.slice(2, 0, 1).expand(shape), there.slice(2, 0, 1).expand(shape),
                              axes_of(set));
    }
  }
}

TEST_P(ReductionOnDevice, RowsAndColumnsOfAllLengths) {
  for (std::int64_t n : {1, 2, 3, 5, 31, 33, 64, 129, 600, 2049, 4100}) {
    const Tensor x = noise({3, n});
    expect_sums_and_extrema(x, to_device(x), {1});
    expect_sums_and_extrema(x, to_device(x), {0});
    expect_sums_and_extrema(x.transpose(0, 1), to_device(x).transpose(0, 1), {0});
    const Tensor tall = noise({n, 12});
    expect_sums_and_extrema(tall, to_device(tall), {0});
  }
}

TEST_P(ReductionOnDevice, SeveralBlocksToAResult) {
  for (DType dtype : {kF32, kBF16, kF64}) {
    const Tensor x = noise({70001}, dtype);
    expect_sums_and_extrema(x, to_device(x), {});
    expect_sums_and_extrema(x.slice(0, 3, 70001), to_device(x).slice(0, 3, 70001), {});
    const Tensor tall = noise({2500, 16}, dtype);
    expect_sums_and_extrema(tall, to_device(tall), {0});
    expect_sums_and_extrema(tall.slice(1, 1, 8), to_device(tall).slice(1, 1, 8), {0});
  }
}

TEST_P(ReductionOnDevice, RowsThatBeginAnywhere) {
  for (DType dtype : {kF32, kF16, kBF16, kF64}) {
    const Tensor x = noise({5, 77}, dtype);
    for (std::int64_t begin : {0, 1, 3, 7, 70})
      expect_sums_and_extrema(x.slice(1, begin, 77), to_device(x).slice(1, begin, 77), {1});
  }
}

TEST_P(ReductionOnDevice, TheSameBitsEachTime) {
  const Tensor x = to_device(noise({9000, 12}));
  const Tensor all = sum(x), columns = sum(x, {0}), rows = sum(x, {1});
  EXPECT_SAME_BITS(to_host(sum(x)), to_host(all));
  EXPECT_SAME_BITS(to_host(sum(x, {0})), to_host(columns));
  EXPECT_SAME_BITS(to_host(sum(x, {1})), to_host(rows));
}

TEST_P(ReductionOnDevice, IntegersAreExactAndWrap) {
  for (DType dtype : {kI32, kI64, kU8, kBool}) {
    const Tensor x = cast(arange(3 * 1000), dtype).view({3, 1000});
    for (const Shape& axes : {Shape{0}, Shape{1}, Shape{}}) {
      EXPECT_SAME_BITS(to_host(sum(to_device(x), axes)), sum(x, axes));
      EXPECT_SAME_BITS(to_host(amax(to_device(x), axes)), amax(x, axes));
      EXPECT_SAME_BITS(to_host(amin(to_device(x), axes)), amin(x, axes));
      EXPECT_SAME_BITS(to_host(any(to_device(x), axes)), any(x, axes));
      EXPECT_SAME_BITS(to_host(all(to_device(x), axes)), all(x, axes));
    }
  }
  const Tensor large = full({4}, std::int64_t{1} << 62, {kI64});
  EXPECT_EQ(to_host(sum(to_device(large))).item<std::int64_t>(), 0);
}

TEST_P(ReductionOnDevice, ResultInAnotherDtype) {
  const Tensor halves = full({70000}, 1, {kF16});
  EXPECT_EQ(to_host(sum(to_device(halves))).item(), kInf);  // beyond f16
  EXPECT_EQ(to_host(sum(to_device(halves), {}, false, kF32)).item(), 70000);
  const Tensor flags = cast(arange(10), kBool);
  EXPECT_NEAR(to_host(mean(to_device(flags), {}, false, kF32)).item(), 0.9, 1e-7);
  EXPECT_EQ(to_host(sum(to_device(full({5}, 1.75, {kF32})), {}, false, kI64)).item(), 5);
}

TEST_P(ReductionOnDevice, NanAndInfinities) {
  for (std::int64_t n : {5, 40, 1200}) {
    Tensor x = zeros({4, n});
    float* p = x.data<float>();
    p[n - 1] = static_cast<float>(kNan);
    p[n] = static_cast<float>(kInf);
    p[2 * n + 1] = static_cast<float>(-kInf);
    const Tensor there = to_device(x);
    EXPECT_CLOSE(to_host(amax(there, {1})), amax(x, {1}), 0, 0);
    EXPECT_CLOSE(to_host(amin(there, {1})), amin(x, {1}), 0, 0);
    EXPECT_CLOSE(to_host(amax(there, {0})), amax(x, {0}), 0, 0);
    EXPECT_CLOSE(to_host(sum(there, {1})), sum(x, {1}), 0, 0);
  }
}

TEST_P(ReductionOnDevice, Nothing) {
  const Tensor x = to_device(empty({3, 0}));
  EXPECT_CLOSE(to_host(sum(x, {1})), zeros({3}), 0, 0);
  EXPECT_CLOSE(to_host(mean(x, {1})), full({3}, kNan, {kF32}), 0, 0);
  EXPECT_EQ(sum(x, {0}).shape(), Shape{0});
  EXPECT_EQ(sum(x, {0}).device(), device());
  EXPECT_THROW(amax(x, {1}), Error);
  EXPECT_EQ(to_host(sum(to_device(full({}, 3)))).item(), 3);
  EXPECT_SAME_BITS(to_host(any(x, {1})), zeros({3}, {kBool}));
  EXPECT_SAME_BITS(to_host(all(x, {1})), full({3}, 1, {kBool}));
}

TEST_P(ReductionOnDevice, UndoesABroadcast) {
  const Tensor x = noise({4, 6, 5});
  for (const Shape& shape : {Shape{5}, Shape{6, 1}, Shape{4, 1, 5}, Shape{1, 1}})
    EXPECT_CLOSE(to_host(sum_to(to_device(x), shape)), sum_to(x, shape), 1e-5, 1e-5);
}

TEST_P(ReductionOnDevice, MomentsAndNorms) {
  for (DType dtype : {kF32, kF16, kBF16, kF64}) {
    const Tensor x = noise({6, 50}, dtype), there = to_device(x), exact = cast(x, kF64);
    const double tolerance = 4 * epsilon(dtype);
    for (const Shape& axes : {Shape{0}, Shape{1}, Shape{}}) {
      EXPECT_CLOSE(cast(to_host(var(there, axes)), kF64), var(exact, axes), tolerance, 0);
      EXPECT_CLOSE(cast(to_host(kernels::std(there, axes, 0, true)), kF64),
                   kernels::std(exact, axes, 0, true), tolerance, 0);
      for (Norm kind : {Norm::kL1, Norm::kL2, Norm::kInf})
        EXPECT_CLOSE(cast(to_host(norm(there, kind, axes)), kF64), norm(exact, kind, axes),
                     tolerance, 0);
      const Tensor dy = var(x, axes, 1, true);
      EXPECT_CLOSE(cast(to_host(var_backward(to_device(dy), there, axes, 1)), kF64),
                   var_backward(cast(dy, kF64), exact, axes, 1), tolerance, tolerance);
    }
  }
  // A large mean costs no precision; squares beyond f32 do not overflow.
  const Tensor far = cast(arange(1000), kF32), shifted = full({1000}, 3e18, {kF32});
  EXPECT_NEAR(to_host(var(to_device(far))).item(), 83416.67, 0.02);
  EXPECT_NEAR(to_host(norm(to_device(shifted))).item() / (3e18 * std::sqrt(1000.)), 1, 1e-6);
  EXPECT_CLOSE(to_host(var(to_device(full({1}, 2)), {}, 1)), full({}, kNan, {kF32}), 0, 0);
}

TEST_P(ReductionOnDevice, ValuesAndIndicesAlongAnAxis) {
  for (DType dtype : {kF32, kF16, kBF16, kF64, kI64, kI32, kU8}) {
    // Few different values, so that many are equal.
    Tensor x = cast(cast(mul(noise({3, 5, 37}), 4), kI32), dtype);
    const auto check = [&](const Tensor& x, const Tensor& there, std::int64_t axis, bool keepdim) {
      const ValuesAndIndices greatest = max_along(there, axis, keepdim),
                             smallest = min_along(there, axis, keepdim);
      EXPECT_EQ(greatest.indices.device(), device());
      EXPECT_SAME_BITS(to_host(greatest.values), max_along(x, axis, keepdim).values);
      EXPECT_SAME_BITS(to_host(greatest.indices), max_along(x, axis, keepdim).indices);
      EXPECT_SAME_BITS(to_host(smallest.values), min_along(x, axis, keepdim).values);
      EXPECT_SAME_BITS(to_host(smallest.indices), min_along(x, axis, keepdim).indices);
    };
    const Tensor there = to_device(x);
    for (std::int64_t axis : {0, 1, 2}) check(x, there, axis, axis == 1);
    check(x.transpose(0, 2), there.transpose(0, 2), 0, false);
    check(x.slice(2, 1, 36, 3), there.slice(2, 1, 36, 3), 1, true);
  }
  // A block to a result; several; a thread to each of many side by side.
  for (const Shape& shape : {Shape{2, 1500}, Shape{1, 9000}, Shape{3, 5000}}) {
    Tensor x = noise(shape);
    x.data<float>()[shape.numel() - 3] = static_cast<float>(kNan);
    for (std::int64_t axis : {0, 1}) {
      EXPECT_SAME_BITS(to_host(max_along(to_device(x), axis).indices), max_along(x, axis).indices);
      EXPECT_SAME_BITS(to_host(min_along(to_device(x), axis).indices), min_along(x, axis).indices);
    }
  }
  EXPECT_EQ(to_host(max_along(to_device(full({}, 5)), 0).values).item(), 5);
  EXPECT_EQ(max_along(to_device(empty({0, 3})), 1, true).indices.shape(), (Shape{0, 1}));
  EXPECT_THROW(max_along(to_device(empty({0, 3})), 0), Error);
}

LOCKSTEP_ON_ALL_DEVICES(ReductionOnDevice);

}  // namespace
}  // namespace lockstep
