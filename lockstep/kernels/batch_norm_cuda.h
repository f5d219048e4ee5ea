// batch_norm.h and batch_norm_pool.h on CUDA devices. Internal.
#pragma once

#include "lockstep/kernels/batch_norm.h"
#include "lockstep/kernels/batch_norm_pool.h"
#include "lockstep/kernels/batch_norm_rows.h"

namespace lockstep::kernels::cuda {

// The state in the dtype of the computation, contiguous, checked against C channels. Undefined
// tensors stay so: they mean 0, 1, 1 and 0.
BatchNormState batch_norm_state(const BatchNormState& state, std::int64_t c, DType wide);

// x has at least one element. mean and var (C) are written (=).
void batch_norm_moments(const ChannelRows& x, const Tensor& mean, const Tensor& var);
// Of contiguous tensors of f32 or f64.
void batch_norm_inverse_std(const Tensor& var, double eps, const Tensor& out);
// running = (1 - factor) running + factor scale value.
void batch_norm_update_running(const Tensor& running, const Tensor& value, double scale,
                               double factor);
void batch_norm_forward(const ChannelRows& x, const BatchNormState& state, const Tensor& y);

// The gradient behind the norm: dy itself, or what comes through max pooling of windows side by
// side from dy (N,C,P,Q) of any strides, with the pooling's taps.
struct BatchNormGradient {
  Tensor dy, taps = {};
  Shape x = {};  // of the images, with taps
  std::int64_t kernel[2] = {1, 1};
};

// sums (C) are written (=). x has at least one element, here and below.
void batch_norm_backward_sums(const BatchNormGradient& gradient, const ChannelRows& x,
                              const BatchNormState& state, const BatchNormSums& sums);
// sums: f32 or f64, contiguous; count 0: the statistics are given.
void batch_norm_backward(const BatchNormGradient& gradient, const ChannelRows& x,
                         const BatchNormState& state, const BatchNormSums& sums, std::int64_t count,
                         const Tensor& dx);

// x channels-last, y of any strides, taps (N,P,Q,C).
void batch_norm_pool_forward(const Tensor& x, const BatchNormState& state,
                             const Pool2dOptions& options, const Tensor& y, const Tensor& taps);

}  // namespace lockstep::kernels::cuda
