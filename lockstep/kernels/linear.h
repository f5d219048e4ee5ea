// The fully connected layer: y = x w^T + b, with or without a ReLU behind it.
//
// x (…, I), w (O, I), b (O) or undefined, y (…, O); one floating dtype, sums in f32 (f64 for f64).
//   dx = dy w,  dw = dy^T x,  db = sum of dy over all but the last axis
// All results are new tensors (=).
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// With `relu` max(0, y), which keeps NaN. Throws Error naming the shapes where they don't fit.
Tensor linear_forward(const Tensor& x, const Tensor& w, const Tensor& b, bool relu = false);

// `dy` is that of x w^T + b: with a ReLU, mask it first (relu_backward).
Tensor linear_backward_input(const Tensor& dy, const Tensor& w);
Tensor linear_backward_weight(const Tensor& dy, const Tensor& x);
Tensor linear_backward_bias(const Tensor& dy);

}  // namespace lockstep::kernels
