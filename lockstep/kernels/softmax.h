// Softmax and log-softmax along one axis.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// Every function: any floating dtype, any layout; f16 and bf16 are computed in f32, and the sums of
// a row have one order whatever the number of threads. The result (=) is a new tensor with the
// layout of the first argument where that is dense, else contiguous. `axis` is 0 … dim-1. Empty
// tensors and an axis of size 0 give an empty result. A row holding NaN or +inf, or only -inf, is
// NaN throughout, as in PyTorch; a single -inf has probability 0.

// y_i = exp(x_i - max) / sum_j exp(x_j - max)
Tensor softmax_forward(const Tensor& x, int axis);
// dx_i = y_i (dy_i - sum_j dy_j y_j)
Tensor softmax_backward(const Tensor& dy, const Tensor& y, int axis);

// y_i = (x_i - max) - log(sum_j exp(x_j - max))
Tensor log_softmax_forward(const Tensor& x, int axis);
// dx_i = dy_i - exp(y_i) sum_j dy_j
Tensor log_softmax_backward(const Tensor& dy, const Tensor& y, int axis);

}  // namespace lockstep::kernels
