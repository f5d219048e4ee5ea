// Layer normalisation on the CPU: a row stays in cache for its three passes.
#include "lockstep/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/rows.h"
#include "lockstep/kernels/simd.h"

namespace lockstep::kernels {
namespace {

// Rows per partial sum: a function of their number alone, at most 128 partial sums.
std::int64_t row_block(std::int64_t rows) { return std::max<std::int64_t>(64, (rows + 127) / 128); }

// A parameter as values of the type that rows are computed in; empty if it is undefined.
template <class A>
std::vector<A> parameter(const Tensor& p, const Shape& shape, const char* name) {
  if (!p.defined()) return {};
  LOCKSTEP_CHECK(p.shape() == shape, "layer_norm: {} has shape {} but is applied to axes of {}",
                 name, p.shape(), shape);
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

}  // namespace

LayerNorm layer_norm_forward(const Tensor& given, int axes, const Tensor& weight,
                             const Tensor& bias, double eps) {
  const Tensor x = given.contiguous();
  const Shape inner = trailing(x.shape(), axes);
  const std::int64_t n = inner.numel();
  Shape outer = x.shape();
  for (int i = 0; i < axes; ++i) outer = outer.erased(outer.rank() - 1);
  const std::int64_t rows = outer.numel();
  return visit_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using A = Accumulator<T>;
    const std::vector<A> w = parameter<A>(weight, inner, "weight");
    const std::vector<A> b = parameter<A>(bias, inner, "bias");
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
  Tensor dx = empty(x.shape(), {x.dtype()});
  visit_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using A = Accumulator<T>;
    const std::vector<A> w = parameter<A>(weight, inner, "weight");
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
  return visit_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using A = Accumulator<T>;
    return narrowed(sum_over_rows<T>(dy.data<T>(), x.data<T>(), mean.data<A>(), rstd.data<A>(),
                                     mean.numel(), weight.numel()),
                    weight);
  });
}

Tensor layer_norm_backward_bias(const Tensor& given_dy, const Tensor& bias) {
  const Tensor dy = given_dy.contiguous();
  const std::int64_t n = bias.numel(), rows = n == 0 ? 0 : dy.numel() / n;
  return visit_floating(dy.dtype(), "layer_norm", [&]<class T>() {
    return narrowed(sum_over_rows<T>(dy.data<T>(), nullptr, nullptr, nullptr, rows, n), bias);
  });
}

}  // namespace lockstep::kernels
