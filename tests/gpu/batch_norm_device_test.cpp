// Batch norm, plain and with max pooling behind it, and max pooling alone, on every device against
// the CPU's f64.
#include <gtest/gtest.h>

#include "lockstep/core/random.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/batch_norm_pool.h"
#include "lockstep/kernels/cast.h"
#include "support/device.h"
#include "support/device_tolerance.h"
#include "support/expect_close.h"

namespace lockstep::kernels {
namespace {

double tolerance(DType dtype) { return 1.5 * testing::device_tolerance(dtype); }

Tensor wide(const Tensor& t) { return t.defined() ? cast(t, kF64) : t; }

class NormOnDevice : public testing::DeviceTest {
 protected:
  Tensor random(const Shape& shape, DType dtype = kF32) {
    Tensor x = cast(randn(shape, generator_), dtype);
    return x.dim() == 4 ? x.contiguous(MemoryFormat::kChannelsLast) : x;
  }
  Tensor far(const Tensor& t) const { return t.defined() ? to_device(t) : t; }
  void expect_close(const Tensor& got, const Tensor& exact, double tolerance,
                    double absolute) const {
    EXPECT_EQ(got.device(), device());
    EXPECT_EQ(got.shape(), exact.shape());
    EXPECT_CLOSE(cast(to_host(got), kF64), exact, tolerance, absolute);
  }
  BatchNormState state(std::int64_t c, DType dtype, bool relu) {
    const Tensor var = cast(full({c}, 0.5), dtype);
    return {random({c}, dtype), batch_norm_inverse_std(var, 1e-5), random({c}, dtype),
            random({c}, dtype), relu};
  }
  BatchNormState far(const BatchNormState& s) const {
    return {far(s.mean), far(s.inverse_std), far(s.gamma), far(s.beta), s.relu};
  }
  static BatchNormState exact(const BatchNormState& s) {
    return {wide(s.mean), wide(s.inverse_std), wide(s.gamma), wide(s.beta), s.relu};
  }

  Generator generator_{3};
};

TEST_P(NormOnDevice, Moments) {
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    for (const Shape& shape : {Shape{1, 1}, Shape{5, 7}, Shape{300, 16}, Shape{3, 8, 5},
                               Shape{6, 64, 7, 6}, Shape{2, 300, 3, 3}, Shape{30, 3, 9, 8}}) {
      SCOPED_TRACE(fmt::format("{} {}", dtype_name(dtype), shape));
      // Far from 0, where a sum of squares would cancel.
      const Tensor x = cast(add(random(shape), 30), dtype);
      const BatchNormMoments got = batch_norm_moments(far(x)), want = batch_norm_moments(wide(x));
      EXPECT_EQ(got.count, want.count);
      EXPECT_EQ(got.mean.dtype(), dtype == kF64 ? kF64 : kF32);
      const double t = dtype == kF64 ? 1e-12 : 2e-6;
      expect_close(got.mean, want.mean, t, 0);
      expect_close(got.var, want.var, 100 * t, 10 * t);
    }
}

TEST_P(NormOnDevice, RunningStatistics) {
  const BatchNormMoments m{random({9}), random({9}), 12};
  for (const DType dtype : {kF32, kF64, kBF16}) {
    const Tensor mean = random({9}, dtype), var = random({9}, dtype);
    const Tensor far_mean = far(mean.clone()), far_var = far(var.clone());
    batch_norm_update_running(far_mean, far_var, {far(m.mean), far(m.var), 12}, 0.1);
    batch_norm_update_running(mean, var, m, 0.1);
    EXPECT_CLOSE(to_host(far_mean), mean, tolerance(dtype) / 10, 1e-7);
    EXPECT_CLOSE(to_host(far_var), var, tolerance(dtype) / 10, 1e-7);
  }
}

TEST_P(NormOnDevice, ForwardAndBackward) {
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    for (const bool relu : {false, true})
      for (const Shape& shape :
           {Shape{7, 5}, Shape{40, 16}, Shape{3, 8, 5}, Shape{4, 24, 5, 6}, Shape{2, 70, 3, 3}}) {
        SCOPED_TRACE(fmt::format("{} {} relu {}", dtype_name(dtype), shape, relu));
        const Tensor x = random(shape, dtype), dy = random(shape, dtype);
        const DType of_state = dtype == kF64 ? kF64 : kF32;
        const BatchNormState s = state(shape[1], of_state, relu), there = far(s), e = exact(s);
        const double t = tolerance(dtype);
        const Tensor y = batch_norm_forward(far(x), there);
        EXPECT_EQ(y.dtype(), dtype);
        EXPECT_EQ(y.is_contiguous(MemoryFormat::kChannelsLast), x.dim() == 4);
        expect_close(y, batch_norm_forward(wide(x), e), t, t);
        const BatchNormSums got = batch_norm_backward_sums(far(dy), far(x), there);
        const BatchNormSums want = batch_norm_backward_sums(wide(dy), wide(x), e);
        expect_close(got.dy, want.dy, 1e-5, 1e-4);
        expect_close(got.dy_xmu, want.dy_xmu, 1e-5, 1e-4);
        expect_close(batch_norm_dgamma(got, there.inverse_std),
                     batch_norm_dgamma(want, e.inverse_std), 1e-5, 1e-4);
        const std::int64_t count = x.numel() / shape[1];
        expect_close(batch_norm_backward(far(dy), far(x), there, got, count),
                     batch_norm_backward(wide(dy), wide(x), e, want, count), t, t);
        expect_close(batch_norm_backward_given(far(dy), far(x), there),
                     batch_norm_backward_given(wide(dy), wide(x), e), t, t);
      }
}

TEST_P(NormOnDevice, WithoutWeightsAndWithHalfOnes) {
  const Tensor x = random({6, 8}, kBF16);
  BatchNormState plain = state(8, kF32, false);
  plain.gamma = plain.beta = Tensor();
  expect_close(batch_norm_forward(far(x), far(plain)), batch_norm_forward(wide(x), exact(plain)),
               2e-2, 2e-2);
  BatchNormState half = state(8, kF32, true);
  half.gamma = cast(half.gamma, kBF16);
  half.beta = cast(half.beta, kBF16);
  expect_close(batch_norm_forward(far(x), far(half)), batch_norm_forward(wide(x), exact(half)),
               2e-2, 2e-2);
}

TEST_P(NormOnDevice, Empty) {
  const Tensor x = far(empty({0, 4, 3, 3}));
  const BatchNormMoments m = batch_norm_moments(x);
  EXPECT_SAME_BITS(to_host(m.mean), zeros({4}));
  const BatchNormState s = far(state(4, kF32, false));
  EXPECT_EQ(batch_norm_forward(x, s).shape(), x.shape());
  const BatchNormSums sums = batch_norm_backward_sums(x, x, s);
  EXPECT_SAME_BITS(to_host(sums.dy), zeros({4}));
  EXPECT_EQ(batch_norm_backward(x, x, s, sums, 0).shape(), x.shape());
}

TEST_P(NormOnDevice, BehindItReluAndMaxPooling) {
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{3, 16, 6, 6}})
      for (const MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
        SCOPED_TRACE(fmt::format("{} {}", dtype_name(dtype), shape));
        Pool2dOptions window;
        window.kernel[1] = window.stride[1] = 3;
        const Tensor x = random(shape, dtype);
        const DType of_state = dtype == kF64 ? kF64 : kF32;
        const BatchNormState s = state(shape[1], of_state, true), there = far(s), e = exact(s);
        const MaxPool2dResult got = batch_norm_pool_forward(far(x), there, window, format);
        const MaxPool2dResult want = batch_norm_pool_forward(wide(x), e, window, format);
        const double t = tolerance(dtype);
        EXPECT_TRUE(got.y.is_contiguous(format));
        expect_close(got.y, want.y, t, t);
        const Tensor dy = random(got.y.shape(), dtype).contiguous(format);
        const Tensor taps = want.taps, far_taps = far(taps);
        const BatchNormSums sums =
            batch_norm_pool_backward_sums(far(dy), far_taps, far(x), there, window);
        const BatchNormSums exact_sums =
            batch_norm_pool_backward_sums(wide(dy), taps, wide(x), e, window);
        expect_close(sums.dy, exact_sums.dy, 1e-5, 1e-4);
        expect_close(sums.dy_xmu, exact_sums.dy_xmu, 1e-5, 1e-4);
        for (const std::int64_t count : {std::int64_t{0}, x.numel() / shape[1]})
          expect_close(
              batch_norm_pool_backward(far(dy), far_taps, far(x), there, window, sums, count),
              batch_norm_pool_backward(wide(dy), taps, wide(x), e, window, exact_sums, count), t,
              t);
      }
}

std::vector<Pool2dOptions> windows() {
  Pool2dOptions plain, overlapping, apart, up;
  overlapping.kernel[0] = overlapping.kernel[1] = 3;
  overlapping.padding[0] = overlapping.padding[1] = 1;
  apart.kernel[0] = 2;
  apart.dilation[0] = 2;
  apart.stride[1] = 3;
  up.ceil_mode = true;
  up.kernel[1] = 3;
  up.padding[1] = 1;
  return {plain, overlapping, apart, up};
}

TEST_P(NormOnDevice, MaxPooling) {
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    for (const Pool2dOptions& window : windows())
      for (const Shape& shape : {Shape{2, 1, 5, 6}, Shape{2, 16, 7, 6}}) {
        SCOPED_TRACE(fmt::format("{} {}", dtype_name(dtype), shape));
        // Few values, so that maxima tie, and a NaN.
        const Tensor few = cast(cast(mul(random(shape), 2), kI32), kF32);
        few.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
        const Tensor x = cast(few, dtype);
        for (const MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
          const MaxPool2dResult got = max_pool2d_forward(far(x), window, format);
          const MaxPool2dResult want = max_pool2d_forward(x, window, format);
          EXPECT_SAME_BITS(to_host(got.y), want.y);
          EXPECT_SAME_BITS(to_host(got.taps), want.taps);
          const Tensor dy = random(want.y.shape(), dtype).contiguous(format);
          const Tensor dx = max_pool2d_backward(far(dy), got.taps, shape, window);
          EXPECT_TRUE(dx.is_contiguous(MemoryFormat::kChannelsLast));
          expect_close(dx, max_pool2d_backward(wide(dy), want.taps, shape, window),
                       tolerance(dtype), tolerance(dtype) / 10);
        }
      }
}

TEST_P(NormOnDevice, TwoDevicesAreRefused) {
  if (device().is_cpu()) GTEST_SKIP() << "there is only one CPU";
  const Tensor x = random({2, 4, 3, 3});
  EXPECT_THROW(batch_norm_forward(far(x), state(4, kF32, false)), Error);
  EXPECT_THROW(batch_norm_forward(x, far(state(4, kF32, false))), Error);
}

LOCKSTEP_ON_ALL_DEVICES(NormOnDevice);

}  // namespace
}  // namespace lockstep::kernels
