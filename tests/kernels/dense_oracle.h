// Convolution, pooling, batch norm and products in f64, straight from their formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/avg_pool2d.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/conv2d.h"

namespace lockstep::testing {

// Normal numbers, rounded to `dtype`.
inline Tensor random_tensor(const Shape& shape, std::uint64_t seed, DType dtype = kF64,
                            double mean = 0, double std = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(mean, std);
  Tensor t = empty(shape, {.dtype = kF64});
  for (std::int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = normal(engine);
  return kernels::cast(t, dtype);
}

inline Tensor to_f64(const Tensor& t) { return kernels::cast(t, kF64).contiguous(); }

// f64 (N,C,H,W), contiguous.
struct Images {
  Tensor t;
  double& at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) const {
    const Shape& s = t.shape();
    return t.data<double>()[((n * s[1] + c) * s[2] + y) * s[3] + x];
  }
};

// Calls f(n, k, p, q, c, r, s, y, x) for every product of a convolution, c within its group.
template <class F>
void for_each_product(const Shape& xs, const Shape& ws, const kernels::Conv2dOptions& o,
                      const F& f) {
  const Shape ys = kernels::conv2d_shape(xs, ws, o);
  const std::int64_t per_group = ws[0] / o.groups;
  for (std::int64_t n = 0; n < ys[0]; ++n)
    for (std::int64_t k = 0; k < ys[1]; ++k)
      for (std::int64_t p = 0; p < ys[2]; ++p)
        for (std::int64_t q = 0; q < ys[3]; ++q)
          for (std::int64_t c = 0; c < ws[1]; ++c)
            for (std::int64_t r = 0; r < ws[2]; ++r)
              for (std::int64_t s = 0; s < ws[3]; ++s) {
                const std::int64_t y = p * o.stride[0] - o.padding[0] + r * o.dilation[0];
                const std::int64_t x = q * o.stride[1] - o.padding[1] + s * o.dilation[1];
                if (y >= 0 && y < xs[2] && x >= 0 && x < xs[3])
                  f(n, k, p, q, c, r, s, k / per_group * ws[1] + c, y, x);
              }
}

struct ConvOracle {
  Tensor y, dx, dw, db;
};

inline ConvOracle conv_oracle(const Tensor& x_in, const Tensor& w_in, const Tensor& b_in,
                              const Tensor& dy_in, const kernels::Conv2dOptions& o) {
  const Images x{to_f64(x_in)}, w{to_f64(w_in)}, dy{to_f64(dy_in)};
  const Shape ys = kernels::conv2d_shape(x_in.shape(), w_in.shape(), o);
  const Images y{zeros(ys, {.dtype = kF64})}, dx{zeros(x_in.shape(), {.dtype = kF64})},
      dw{zeros(w_in.shape(), {.dtype = kF64})};
  for_each_product(
      x_in.shape(), w_in.shape(), o,
      [&](auto n, auto k, auto p, auto q, auto c, auto r, auto s, auto ic, auto iy, auto ix) {
        y.at(n, k, p, q) += w.at(k, c, r, s) * x.at(n, ic, iy, ix);
        dx.at(n, ic, iy, ix) += w.at(k, c, r, s) * dy.at(n, k, p, q);
        dw.at(k, c, r, s) += x.at(n, ic, iy, ix) * dy.at(n, k, p, q);
      });
  const Tensor db = zeros({ys[1]}, {.dtype = kF64});
  const Tensor b = b_in.defined() ? to_f64(b_in) : Tensor();
  for (std::int64_t n = 0; n < ys[0]; ++n)
    for (std::int64_t k = 0; k < ys[1]; ++k)
      for (std::int64_t p = 0; p < ys[2]; ++p)
        for (std::int64_t q = 0; q < ys[3]; ++q) {
          db.data<double>()[k] += dy.at(n, k, p, q);
          if (b.defined()) y.at(n, k, p, q) += b.data<double>()[k];
        }
  return {y.t, dx.t, dw.t, db};
}

// a (M,K) b (K,N).
inline Tensor product_oracle(const Tensor& a_in, const Tensor& b_in) {
  const Tensor a = to_f64(a_in), b = to_f64(b_in);
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  Tensor c = zeros({m, n}, {.dtype = kF64});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j)
        c.data<double>()[i * n + j] += a.data<double>()[i * k + p] * b.data<double>()[p * n + j];
  return c;
}

// What a result of this dtype may differ by from the f64 one, relative and absolute, where sums
// have `terms` terms of size 1.
struct Tolerance {
  double relative, absolute;
};
inline Tolerance tolerance(DType dtype, double terms) {
  const double eps = dtype == kF64 ? 1e-14 : dtype == kF32 ? 1e-6 : dtype == kF16 ? 1e-3 : 8e-3;
  return {eps * 2, eps * std::sqrt(std::max(terms, 1.0)) * 2};
}

}  // namespace lockstep::testing
