// Layer normalisation on the CPU: a row stays in cache for its three passes.
#include "lockstep/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/layer_norm_cuda.h"
#include "lockstep/kernels/promote.h"
#include "lockstep/kernels/rows.h"
#include "lockstep/kernels/simd.h"

namespace lockstep::kernels {
namespace {

// Rows per partial sum: a function of their number alone, at most 128 partial sums.
std::int64_t row_block(std::int64_t rows) { return std::max<std::int64_t>(64, (rows + 127) / 128); }

void check_parameter(const Tensor& p, const Shape& shape, const char* name) {
  LOCKSTEP_CHECK(!p.defined() || p.shape() == shape,
                 "layer_norm: {} has shape {} but is applied to axes of {}", name, p.shape(),
                 shape);
}

// A parameter as values of the type that rows are computed in; empty if it is undefined.
template <class A>
std::vector<A> parameter(const Tensor& p) {
  if (!p.defined()) return {};
  std::vector<A> values(static_cast<std::size_t>(p.numel()));
  const Tensor c = p.contiguous();
  visit_floating(p.dtype(), "layer_norm", [&]<class T>() {
    std::transform(c.data<T>(), c.data<T>() + c.numel(), values.begin(),
                   [](T v) { return static_cast<A>(v); });
  });
  return values;
}

Shape trailing(const Shape& shape, int axes) {
  return Shape(std::span<const std::int64_t>(shape.end() - axes, shape.end()));
}

template <class A>
Tensor narrowed(const std::vector<A>& values, const Tensor& like) {
  Tensor out = empty(like.shape(), {like.dtype()});
  visit_floating(like.dtype(), "layer_norm", [&]<class T>() {
    std::transform(values.begin(), values.end(), out.data<T>(),
                   [](A v) { return static_cast<T>(v); });
  });
  return out;
}

template <class T>
LOCKSTEP_SIMD_FN void norm_row(const T* x, const Accumulator<T>* weight, const Accumulator<T>* bias,
                               T* y, std::int64_t n, Accumulator<T> eps, Accumulator<T>* mean,
                               Accumulator<T>* rstd) {
  using A = Accumulator<T>;
  const A m = sum_row<T>(n, [&](std::int64_t i, std::int64_t k)
                                LOCKSTEP_SIMD { return load_at(x, i, k); }) /
              static_cast<A>(n);
  const A v = sum_row<T>(n,
                         [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
                           const Lanes<T> d = load_at(x, i, k, m) - m;
                           return d * d;
                         }) /
              static_cast<A>(n);
  const A r = 1 / std::sqrt(v + eps);
  for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    Lanes<T> h = (load_at(x, i, k) - m) * r;
    if (weight) h *= load_at(weight, i, k);
    if (bias) h += load_at(bias, i, k);
    store_at(y, i, k, h);
  });
  *mean = m;
  *rstd = r;
}

template <class T>
LOCKSTEP_SIMD_FN void grad_row(const T* dy, const T* x, const Accumulator<T>* weight, T* dx,
                               std::int64_t n, Accumulator<T> mean, Accumulator<T> rstd) {
  using A = Accumulator<T>;
  const auto weighted = [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    const Lanes<T> g = load_at(dy, i, k);
    return weight ? g * load_at(weight, i, k) : g;
  };
  const auto normed = [&](std::int64_t i, std::int64_t k)
                          LOCKSTEP_SIMD { return (load_at(x, i, k, mean) - mean) * rstd; };
  const A mean_a = sum_row<T>(n, weighted) / static_cast<A>(n);
  const A mean_ah = sum_row<T>(n, [&](std::int64_t i, std::int64_t k)
                                      LOCKSTEP_SIMD { return weighted(i, k) * normed(i, k); }) /
                    static_cast<A>(n);
  for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    store_at(dx, i, k, (weighted(i, k) - mean_a - normed(i, k) * mean_ah) * rstd);
  });
}

// sum over rows of dy_i (h_i if x is given), per element: blocks of rows first, then the blocks.
template <class T>
std::vector<Accumulator<T>> sum_over_rows(const T* dy, const T* x, const Accumulator<T>* mean,
                                          const Accumulator<T>* rstd, std::int64_t rows,
                                          std::int64_t n) {
  using A = Accumulator<T>;
  const std::int64_t block = row_block(rows), blocks = (rows + block - 1) / block;
  std::vector<A> total(static_cast<std::size_t>(n)), part(static_cast<std::size_t>(blocks * n));
  parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    run_simd([&]() LOCKSTEP_SIMD {
      for (std::int64_t b = begin; b < end; ++b) {
        A* sum = part.data() + b * n;
        const std::int64_t last = std::min(rows, (b + 1) * block);
        for (std::int64_t r = b * block; r < last; ++r)
          for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
            Lanes<T> g = load_at(dy + r * n, i, k);
            if (x) g *= (load_at(x + r * n, i, k) - mean[r]) * rstd[r];
            store_at(sum, i, k, load_at(sum, i, k) + g);
          });
      }
    });
  });
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t i = 0; i < n; ++i)
      total[static_cast<std::size_t>(i)] += part[static_cast<std::size_t>(b * n + i)];
  return total;
}

// On a CUDA device, of contiguous dy and x; x may be undefined where only dbias is wanted.
LayerNormGradients device_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                    const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                    const LayerNormWanted& wanted) {
  const Device device =
      common_device("layer_norm backward", {&dy, &x, &weight, &bias, &mean, &rstd});
  const bool nothing = dy.numel() == 0;
  const auto like = [&](const Tensor& parameter, bool is_wanted) {
    if (!is_wanted) return Tensor();
    const TensorOptions options = {parameter.dtype(), device};
    return nothing ? zeros(parameter.shape(), options) : empty(parameter.shape(), options);
  };
  LayerNormGradients out{like(x, wanted.dx), like(weight, wanted.dweight),
                         like(bias, wanted.dbias)};
  if (!nothing)
    cuda::layer_norm_rows_backward(dy, x, weight, mean, rstd, out.dx, out.dweight, out.dbias);
  return out;
}

}  // namespace

LayerNorm layer_norm_forward(const Tensor& given, int axes, const Tensor& weight,
                             const Tensor& bias, double eps) {
  const Tensor x = given.contiguous();
  const Shape inner = trailing(x.shape(), axes);
  const std::int64_t n = inner.numel();
  Shape outer = x.shape();
  for (int i = 0; i < axes; ++i) outer = outer.erased(outer.rank() - 1);
  const std::int64_t rows = outer.numel();
  check_parameter(weight, inner, "weight");
  check_parameter(bias, inner, "bias");
  if constexpr (kHasCuda) {
    if (common_device("layer_norm", {&x, &weight, &bias}).is_cuda()) {
      LOCKSTEP_CHECK(is_floating(x.dtype()), "layer_norm: expected a floating dtype but got {}",
                     x.dtype());
      const TensorOptions of_rows = {compute_dtype(x.dtype()), x.device()};
      LayerNorm out{empty(x.shape(), {x.dtype(), x.device()}),
                    n == 0 ? zeros(outer, of_rows) : empty(outer, of_rows),
                    n == 0 ? zeros(outer, of_rows) : empty(outer, of_rows)};
      if (x.numel() > 0) cuda::layer_norm_rows(x, weight, bias, eps, out.y, out.mean, out.rstd);
      return out;
    }
  }
  return visit_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using A = Accumulator<T>;
    const std::vector<A> w = parameter<A>(weight);
    const std::vector<A> b = parameter<A>(bias);
    LayerNorm out{empty(x.shape(), {x.dtype()}), zeros(outer, {kDTypeOf<A>}),
                  zeros(outer, {kDTypeOf<A>})};
    if (n == 0) return out;
    parallel_for(rows, row_grain(n), [&](std::int64_t begin, std::int64_t end) {
      run_simd([&]() LOCKSTEP_SIMD {
        for (std::int64_t r = begin; r < end; ++r)
          norm_row(x.data<T>() + r * n, weight.defined() ? w.data() : nullptr,
                   bias.defined() ? b.data() : nullptr, out.y.template data<T>() + r * n, n,
                   static_cast<A>(eps), out.mean.template data<A>() + r,
                   out.rstd.template data<A>() + r);
      });
    });
    return out;
  });
}

Tensor layer_norm_backward(const Tensor& given_dy, const Tensor& given_x, int axes,
                           const Tensor& weight, const Tensor& mean, const Tensor& rstd) {
  const Tensor dy = given_dy.contiguous(), x = given_x.contiguous();
  const Shape inner = trailing(x.shape(), axes);
  const std::int64_t n = inner.numel(), rows = mean.numel();
  check_parameter(weight, inner, "weight");
  if constexpr (kHasCuda)
    if (x.device().is_cuda())
      return device_gradients(dy, x, weight, {}, mean, rstd, {true, false, false}).dx;
  Tensor dx = empty(x.shape(), {x.dtype()});
  visit_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using A = Accumulator<T>;
    const std::vector<A> w = parameter<A>(weight);
    if (n == 0) return;
    parallel_for(rows, row_grain(n), [&](std::int64_t begin, std::int64_t end) {
      run_simd([&]() LOCKSTEP_SIMD {
        for (std::int64_t r = begin; r < end; ++r)
          grad_row(dy.data<T>() + r * n, x.data<T>() + r * n, weight.defined() ? w.data() : nullptr,
                   dx.data<T>() + r * n, n, mean.data<A>()[r], rstd.data<A>()[r]);
      });
    });
  });
  return dx;
}

Tensor layer_norm_backward_weight(const Tensor& given_dy, const Tensor& given_x,
                                  const Tensor& weight, const Tensor& mean, const Tensor& rstd) {
  const Tensor dy = given_dy.contiguous(), x = given_x.contiguous();
  if constexpr (kHasCuda)
    if (x.device().is_cuda())
      return device_gradients(dy, x, weight, {}, mean, rstd, {false, true, false}).dweight;
  return visit_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using A = Accumulator<T>;
    return narrowed(sum_over_rows<T>(dy.data<T>(), x.data<T>(), mean.data<A>(), rstd.data<A>(),
                                     mean.numel(), weight.numel()),
                    weight);
  });
}

Tensor layer_norm_backward_bias(const Tensor& given_dy, const Tensor& bias) {
  const Tensor dy = given_dy.contiguous();
  if constexpr (kHasCuda)
    if (dy.device().is_cuda())
      return device_gradients(dy, {}, {}, bias, {}, {}, {false, false, true}).dbias;
  const std::int64_t n = bias.numel(), rows = n == 0 ? 0 : dy.numel() / n;
  return visit_floating(dy.dtype(), "layer_norm", [&]<class T>() {
    return narrowed(sum_over_rows<T>(dy.data<T>(), nullptr, nullptr, nullptr, rows, n), bias);
  });
}

LayerNormGradients layer_norm_gradients(const Tensor& dy, const Tensor& x, int axes,
                                        const Tensor& weight, const Tensor& bias,
                                        const Tensor& mean, const Tensor& rstd,
                                        const LayerNormWanted& wanted) {
  if constexpr (kHasCuda)
    if (x.device().is_cuda())
      return device_gradients(dy.contiguous(), x.contiguous(), weight, bias, mean, rstd, wanted);
  LayerNormGradients out;
  if (wanted.dx) out.dx = layer_norm_backward(dy, x, axes, weight, mean, rstd);
  if (wanted.dweight) out.dweight = layer_norm_backward_weight(dy, x, weight, mean, rstd);
  if (wanted.dbias) out.dbias = layer_norm_backward_bias(dy, bias);
  return out;
}

}  // namespace lockstep::kernels
