#include "lockstep/kernels/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/batch_norm_channels.h"
#include "lockstep/kernels/batch_norm_cuda.h"
#include "lockstep/kernels/batch_norm_rows.h"
#include "lockstep/kernels/batch_norm_simd.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/device_check.h"

namespace lockstep::kernels {
namespace {

char* row_at(const Tensor& t, std::int64_t row, std::int64_t c) {
  return static_cast<char*>(t.data()) + row * c * static_cast<std::int64_t>(t.itemsize());
}

void check_gradient(const Tensor& dy, const Tensor& x) {
  LOCKSTEP_CHECK(dy.shape() == x.shape() && dy.dtype() == x.dtype(),
                 "batch_norm: expected a gradient {} {} but got {} {}", x.dtype(), x.shape(),
                 dy.dtype(), dy.shape());
}

std::int64_t row_grain(std::int64_t c) {
  constexpr std::int64_t kElements = 32768;
  return std::max<std::int64_t>(kElements / std::max<std::int64_t>(c, 1), 1);
}

}  // namespace

BatchNormMoments batch_norm_moments(const Tensor& x) {
  const DType dtype = batch_norm_wide(x.dtype());
  const ChannelRows r = channel_rows(x);
  if constexpr (kHasCuda)
    if (x.device().is_cuda()) {
      BatchNormMoments m{zeros({r.c}, {dtype, x.device()}), zeros({r.c}, {dtype, x.device()}),
                         r.rows};
      if (x.numel() > 0) cuda::batch_norm_moments(r, m.mean, m.var);
      return m;
    }
  const RowBlocks blocks(r.rows, r.c);
  const Tensor parts = per_block(
      blocks, r.c, dtype,
      [&](std::int64_t first, std::int64_t rows, void* scratch, double* mean, double* m2) {
        batch_norm_kernels().moments(x.dtype(), row_at(r.x, first, r.c), rows, r.c, scratch, mean,
                                     m2);
      });
  const Tensor mean = zeros({r.c}, {.dtype = dtype}), var = zeros({r.c}, {.dtype = dtype});
  const double* means = parts.data<double>();
  const double* m2s = means + blocks.count * r.c;
  visit_floating(dtype, "batch_norm", [&]<class A>() {
    for (std::int64_t j = 0; j < r.c && r.rows > 0; ++j) {
      double m = 0, m2 = 0;
      for (std::int64_t b = 0; b < blocks.count; ++b) {
        const double before = static_cast<double>(blocks.first(b));
        const double here = static_cast<double>(blocks.size(b));
        const double delta = means[b * r.c + j] - m;
        m += delta * here / (before + here);
        m2 += m2s[b * r.c + j] + delta * delta * before * here / (before + here);
      }
      mean.data<A>()[j] = static_cast<A>(m);
      var.data<A>()[j] = static_cast<A>(m2 / static_cast<double>(r.rows));
    }
  });
  return {mean, var, r.rows};
}

Tensor batch_norm_inverse_std(const Tensor& var, double eps) {
  const DType dtype = batch_norm_wide(var.dtype());
  const Tensor v = cast(var, dtype).contiguous();
  Tensor out = empty(v.shape(), {dtype, v.device()});
  if constexpr (kHasCuda)
    if (v.device().is_cuda()) {
      cuda::batch_norm_inverse_std(v, eps, out);
      return out;
    }
  visit_floating(dtype, "batch_norm", [&]<class A>() {
    for (std::int64_t j = 0; j < v.numel(); ++j)
      out.data<A>()[j] = static_cast<A>(1.0 / std::sqrt(static_cast<double>(v.data<A>()[j]) + eps));
  });
  return out;
}

void batch_norm_update_running(const Tensor& running_mean, const Tensor& running_var,
                               const BatchNormMoments& moments, double factor) {
  if (moments.count < 2) return;
  const double unbias = static_cast<double>(moments.count) / static_cast<double>(moments.count - 1);
  const auto update = [&](const Tensor& running, const Tensor& value, double scale) {
    LOCKSTEP_CHECK(running.shape() == value.shape() && running.is_contiguous(),
                   "batch_norm: running statistics {} do not fit {} channels", running.shape(),
                   value.numel());
    running.bump_version();
    if constexpr (kHasCuda)
      if (common_device("batch_norm", {&running, &value}).is_cuda())
        return cuda::batch_norm_update_running(running, value, scale, factor);
    const Tensor wide_value = cast(value, kF64);
    visit_floating(running.dtype(), "batch_norm", [&]<class T>() {
      for (std::int64_t j = 0; j < running.numel(); ++j) {
        const double old = static_cast<double>(running.data<T>()[j]);
        const double v = wide_value.data<double>()[j] * scale;
        running.data<T>()[j] = static_cast<T>((1 - factor) * old + factor * v);
      }
    });
  };
  update(running_mean, moments.mean, 1);
  update(running_var, moments.var, unbias);
}

Tensor batch_norm_forward(const Tensor& x, const BatchNormState& state) {
  const ChannelRows r = channel_rows(x);
  const DType dtype = batch_norm_wide(x.dtype());
  const Tensor y = empty_channel_rows(x);
  if constexpr (kHasCuda)
    if (batch_norm_device(x, state).is_cuda()) {
      const BatchNormState there = cuda::batch_norm_state(state, r.c, dtype);
      if (y.numel() > 0) cuda::batch_norm_forward(r, there, y);
      return y;
    }
  const BatchNormValues channels(state, r.c, dtype);
  parallel_for(r.rows, row_grain(r.c), [&](std::int64_t begin, std::int64_t end) {
    batch_norm_kernels().apply(x.dtype(), row_at(r.x, begin, r.c), row_at(y, begin, r.c),
                               end - begin, r.c, channels.view());
  });
  return y;
}

BatchNormSums batch_norm_backward_sums(const Tensor& dy, const Tensor& x,
                                       const BatchNormState& state) {
  check_gradient(dy, x);
  const DType dtype = batch_norm_wide(x.dtype());
  const ChannelRows in = channel_rows(x), gradient = channel_rows(dy);
  if constexpr (kHasCuda)
    if (batch_norm_device(x, state, &dy).is_cuda()) {
      BatchNormSums sums{zeros({in.c}, {dtype, x.device()}), zeros({in.c}, {dtype, x.device()})};
      const BatchNormState there = cuda::batch_norm_state(state, in.c, dtype);
      if (x.numel() > 0) cuda::batch_norm_backward_sums({.dy = gradient.x}, in, there, sums);
      return sums;
    }
  const BatchNormValues channels(state, in.c, dtype);
  const RowBlocks blocks(in.rows, in.c);
  return add_blocks(
      per_block(
          blocks, in.c, dtype,
          [&](std::int64_t first, std::int64_t rows, void* scratch, double* sum, double* product) {
            batch_norm_kernels().backward_sums(x.dtype(), row_at(in.x, first, in.c),
                                               row_at(gradient.x, first, in.c), rows, in.c,
                                               channels.view(), scratch, sum, product);
          }),
      dtype);
}

Tensor batch_norm_dgamma(const BatchNormSums& sums, const Tensor& inverse_std) {
  if constexpr (kHasCuda)
    if (sums.dy_xmu.device().is_cuda())
      return mul(sums.dy_xmu, cast(inverse_std, sums.dy_xmu.dtype()));
  Tensor out = empty_like(sums.dy_xmu);
  const Tensor inverse = cast(inverse_std, out.dtype()).contiguous();
  visit_floating(out.dtype(), "batch_norm", [&]<class A>() {
    for (std::int64_t j = 0; j < out.numel(); ++j)
      out.data<A>()[j] = sums.dy_xmu.data<A>()[j] * inverse.data<A>()[j];
  });
  return out;
}

Tensor batch_norm_backward(const Tensor& dy, const Tensor& x, const BatchNormState& state,
                           const BatchNormSums& sums, std::int64_t count) {
  check_gradient(dy, x);
  const ChannelRows in = channel_rows(x), gradient = channel_rows(dy);
  const Tensor dx = empty_channel_rows(x);
  const DType dtype = batch_norm_wide(x.dtype());
  if constexpr (kHasCuda)
    if (batch_norm_device(x, state, &dy).is_cuda()) {
      const BatchNormState there = cuda::batch_norm_state(state, in.c, dtype);
      if (dx.numel() > 0) cuda::batch_norm_backward({.dy = gradient.x}, in, there, sums, count, dx);
      return dx;
    }
  const BatchNormValues channels(state, x.shape()[1], dtype);
  const BatchNormFactors factors(channels, sums, count);
  const void* const k[3] = {channels.scale.data(), factors.along.data(), factors.constant.data()};
  parallel_for(in.rows, row_grain(in.c), [&](std::int64_t begin, std::int64_t end) {
    batch_norm_kernels().backward_apply(x.dtype(), row_at(in.x, begin, in.c),
                                        row_at(gradient.x, begin, in.c), row_at(dx, begin, in.c),
                                        end - begin, in.c, channels.view(), k);
  });
  return dx;
}

Tensor batch_norm_backward_given(const Tensor& dy, const Tensor& x, const BatchNormState& state) {
  return batch_norm_backward(dy, x, state, {}, 0);
}

}  // namespace lockstep::kernels
