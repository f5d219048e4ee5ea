// Batch normalisation of (N,C), (N,C,L) or (N,C,H,W) over all axes but C, with or without a ReLU
// behind it, in pieces from which the plain and the synchronised layer are put together.
//
//   y = relu?((x - mean) inverse_std gamma + beta),   inverse_std = 1 / sqrt(var + eps)
//
// Backward, with g = dy (0 where ReLU cut y off), M values per channel, xmu = x - mean:
//   dbeta  = sum g,   dgamma = inverse_std sum g xmu
//   dx = gamma inverse_std (g - sum g / M - xmu inverse_std² sum(g xmu) / M)      statistics of x
//   dx = gamma inverse_std g                                              given (running)
//   statistics
// Source: Ioffe and Szegedy, 2015. ReLU keeps NaN; its mask is computed again from x, so that
// backward needs x, mean and inverse_std only.
//
// dtypes f32, f64, f16, bf16. Statistics, sums and their tensors (C) are f32 (f64 for f64); gamma
// and beta have any floating dtype, undefined means 1 and 0. Statistics are computed from
// deviations (no cancellation), and sums in one order whatever the number of threads. Results are
// new tensors, of x's dtype and, if 4-D, channels-last.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// Of all values of each channel.
struct BatchNormMoments {
  Tensor mean, var;        // var is biased: divided by count
  std::int64_t count = 0;  // values per channel
};

// mean and var are 0 where count is 0.
BatchNormMoments batch_norm_moments(const Tensor& x);

// 1 / sqrt(var + eps).
Tensor batch_norm_inverse_std(const Tensor& var, double eps);

// running += factor (value - running), in place; the value for running_var is unbiased, times
// count / (count - 1). Nothing changes where count < 2.
void batch_norm_update_running(const Tensor& running_mean, const Tensor& running_var,
                               const BatchNormMoments& moments, double factor);

struct BatchNormState {
  Tensor mean, inverse_std, gamma, beta;  // (C)
  bool relu = false;
};

Tensor batch_norm_forward(const Tensor& x, const BatchNormState& state);

struct BatchNormSums {
  Tensor dy, dy_xmu;  // sum g, sum g (x - mean)
};

BatchNormSums batch_norm_backward_sums(const Tensor& dy, const Tensor& x,
                                       const BatchNormState& state);
// inverse_std sum g xmu.
Tensor batch_norm_dgamma(const BatchNormSums& sums, const Tensor& inverse_std);

// dx with the statistics of x, `sums` over all `count` values that made them.
Tensor batch_norm_backward(const Tensor& dy, const Tensor& x, const BatchNormState& state,
                           const BatchNormSums& sums, std::int64_t count);
// dx with given statistics.
Tensor batch_norm_backward_given(const Tensor& dy, const Tensor& x, const BatchNormState& state);

}  // namespace lockstep::kernels
