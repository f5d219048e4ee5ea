#include "lockstep/kernels/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/batch_norm_rows.h"
#include "lockstep/kernels/batch_norm_simd.h"
#include "lockstep/kernels/cast.h"

namespace lockstep::kernels {
namespace {

DType wide(DType dtype) {
  LOCKSTEP_CHECK(is_floating(dtype), "batch_norm: expected a floating dtype but got {}", dtype);
  return dtype == kF64 ? kF64 : kF32;
}

// Note [blocks of rows]: sums over rows are made per block, and those of the blocks added in order.
// The number of blocks depends on the shape only, so the number of threads changes no bit.
struct Blocks {
  std::int64_t count, rows;
};

Blocks blocks_of(const ChannelRows& r) {
  constexpr std::int64_t kElements = 65536, kMost = 64;
  const std::int64_t wanted = std::clamp<std::int64_t>(r.rows * r.c / kElements, 1, kMost);
  const std::int64_t rows = std::max<std::int64_t>((r.rows + wanted - 1) / wanted, 1);
  return {(r.rows + rows - 1) / rows, rows};
}

char* row_at(const Tensor& t, std::int64_t row, std::int64_t c) {
  return static_cast<char*>(t.data()) + row * c * static_cast<std::int64_t>(t.itemsize());
}

// Runs f(block, first row, rows, scratch) and leaves two f64 results per block and channel, which
// `first` and `second` point to.
template <class F>
Tensor per_block(const ChannelRows& r, const Blocks& blocks, const F& f) {
  Tensor results = empty({2, blocks.count, r.c}, {.dtype = kF64});
  double* out = results.data<double>();
  parallel_for(blocks.count, 1, [&](std::int64_t begin, std::int64_t end) {
    const Tensor scratch = empty({3 * r.c}, {.dtype = wide(r.x.dtype())});
    for (std::int64_t b = begin; b < end; ++b)
      f(b * blocks.rows, std::min(blocks.rows, r.rows - b * blocks.rows), scratch.data(),
        out + b * r.c, out + (blocks.count + b) * r.c);
  });
  return results;
}

// (C) in f32 or f64, contiguous; `value` everywhere where t is undefined.
Tensor channel_values(const Tensor& t, std::int64_t c, DType dtype, double value,
                      const char* name) {
  if (!t.defined()) return full({c}, value, {.dtype = dtype});
  LOCKSTEP_CHECK(t.dim() == 1 && t.numel() == c,
                 "batch_norm: {} has shape {}, which does not fit {} channels", name, t.shape(), c);
  return cast(t, dtype).contiguous();
}

// The state in the dtype of the computation, with scale = gamma inverse_std.
struct Channels {
  Tensor mean, inverse_std, gamma, beta, scale;
  bool relu;

  Channels(const BatchNormState& s, std::int64_t c, DType dtype)
      : mean(channel_values(s.mean, c, dtype, 0, "mean")),
        inverse_std(channel_values(s.inverse_std, c, dtype, 1, "inverse_std")),
        gamma(channel_values(s.gamma, c, dtype, 1, "weight")),
        beta(channel_values(s.beta, c, dtype, 0, "bias")),
        scale(empty({c}, {.dtype = dtype})),
        relu(s.relu) {
    visit_floating(dtype, "batch_norm", [&]<class A>() {
      for (std::int64_t j = 0; j < c; ++j)
        scale.data<A>()[j] = gamma.data<A>()[j] * inverse_std.data<A>()[j];
    });
  }
  BatchNormChannels view() const { return {mean.data(), scale.data(), beta.data(), relu}; }
};

void check_gradient(const Tensor& dy, const Tensor& x) {
  LOCKSTEP_CHECK(dy.shape() == x.shape() && dy.dtype() == x.dtype(),
                 "batch_norm: expected a gradient {} {} but got {} {}", x.dtype(), x.shape(),
                 dy.dtype(), dy.shape());
}

std::int64_t row_grain(std::int64_t c) {
  constexpr std::int64_t kElements = 32768;
  return std::max<std::int64_t>(kElements / std::max<std::int64_t>(c, 1), 1);
}

// dx = g k0 + xmu k1 + k2.
Tensor backward_with(const Tensor& dy, const Tensor& x, const Channels& channels, const Tensor& k0,
                     const Tensor& k1, const Tensor& k2) {
  const ChannelRows in = channel_rows(x), gradient = channel_rows(dy);
  const Tensor dx = empty_channel_rows(x);
  const void* const k[3] = {k0.data(), k1.data(), k2.data()};
  parallel_for(in.rows, row_grain(in.c), [&](std::int64_t begin, std::int64_t end) {
    batch_norm_kernels().backward_apply(x.dtype(), row_at(in.x, begin, in.c),
                                        row_at(gradient.x, begin, in.c), row_at(dx, begin, in.c),
                                        end - begin, in.c, channels.view(), k);
  });
  return dx;
}

}  // namespace

BatchNormMoments batch_norm_moments(const Tensor& x) {
  const DType dtype = wide(x.dtype());
  const ChannelRows r = channel_rows(x);
  const Blocks blocks = blocks_of(r);
  const Tensor parts = per_block(
      r, blocks,
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
        const double before = static_cast<double>(b * blocks.rows);
        const double here = static_cast<double>(std::min(blocks.rows, r.rows - b * blocks.rows));
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
  const DType dtype = wide(var.dtype());
  const Tensor v = cast(var, dtype).contiguous();
  Tensor out = empty(v.shape(), {.dtype = dtype});
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
  const Channels channels(state, r.c, wide(x.dtype()));
  const Tensor y = empty_channel_rows(x);
  parallel_for(r.rows, row_grain(r.c), [&](std::int64_t begin, std::int64_t end) {
    batch_norm_kernels().apply(x.dtype(), row_at(r.x, begin, r.c), row_at(y, begin, r.c),
                               end - begin, r.c, channels.view());
  });
  return y;
}

BatchNormSums batch_norm_backward_sums(const Tensor& dy, const Tensor& x,
                                       const BatchNormState& state) {
  check_gradient(dy, x);
  const DType dtype = wide(x.dtype());
  const ChannelRows in = channel_rows(x), gradient = channel_rows(dy);
  const Channels channels(state, in.c, dtype);
  const Blocks blocks = blocks_of(in);
  const Tensor parts = per_block(
      in, blocks,
      [&](std::int64_t first, std::int64_t rows, void* scratch, double* sum, double* product) {
        batch_norm_kernels().backward_sums(x.dtype(), row_at(in.x, first, in.c),
                                           row_at(gradient.x, first, in.c), rows, in.c,
                                           channels.view(), scratch, sum, product);
      });
  BatchNormSums sums{empty({in.c}, {.dtype = dtype}), empty({in.c}, {.dtype = dtype})};
  const double* s = parts.data<double>();
  visit_floating(dtype, "batch_norm", [&]<class A>() {
    for (std::int64_t j = 0; j < in.c; ++j) {
      double sum = 0, product = 0;
      for (std::int64_t b = 0; b < blocks.count; ++b) {
        sum += s[b * in.c + j];
        product += s[(blocks.count + b) * in.c + j];
      }
      sums.dy.data<A>()[j] = static_cast<A>(sum);
      sums.dy_xmu.data<A>()[j] = static_cast<A>(product);
    }
  });
  return sums;
}

Tensor batch_norm_dgamma(const BatchNormSums& sums, const Tensor& inverse_std) {
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
  const DType dtype = wide(x.dtype());
  const std::int64_t c = x.shape()[1];
  const Channels channels(state, c, dtype);
  const Tensor sum_dy = channel_values(sums.dy, c, dtype, 0, "the sum of gradients");
  const Tensor sum_xmu = channel_values(sums.dy_xmu, c, dtype, 0, "the sum of gradients");
  const Tensor k1 = empty({c}, {.dtype = dtype}), k2 = empty({c}, {.dtype = dtype});
  visit_floating(dtype, "batch_norm", [&]<class A>() {
    for (std::int64_t j = 0; j < c && count > 0; ++j) {
      const double scale = channels.scale.data<A>()[j];
      const double inverse = channels.inverse_std.data<A>()[j];
      k1.data<A>()[j] = static_cast<A>(-scale * inverse * inverse *
                                       static_cast<double>(sum_xmu.data<A>()[j]) / count);
      k2.data<A>()[j] = static_cast<A>(-scale * static_cast<double>(sum_dy.data<A>()[j]) / count);
    }
  });
  return backward_with(dy, x, channels, channels.scale, k1, k2);
}

Tensor batch_norm_backward_given(const Tensor& dy, const Tensor& x, const BatchNormState& state) {
  check_gradient(dy, x);
  const std::int64_t c = x.shape()[1];
  const Channels channels(state, c, wide(x.dtype()));
  const Tensor zero = zeros({c}, {.dtype = channels.mean.dtype()});
  return backward_with(dy, x, channels, channels.scale, zero, zero);
}

}  // namespace lockstep::kernels
