// Squared error, element by element.
#pragma once

#include "lockstep/kernels/loss_options.h"

namespace lockstep::kernels {

// x and target: one shape and dtype (floating), any layouts; nothing is broadcast: other shapes are
// an Error that names both. l_i = (x_i - t_i)^2; kNone returns l in x's layout, kSum the sum, kMean
// the sum over the number of elements, 0 for none. Computed in f32 for the half types, summed in
// f64, in an order that does not depend on the number of threads. New tensor (=).
Tensor mse_loss_forward(const Tensor& x, const Tensor& target, Reduction reduction);

// dx_i = 2 g (x_i - t_i), g = dloss, for kMean over the number of elements; dt = -dx. New tensor
// (=) with x's layout where that is dense.
Tensor mse_loss_backward(const Tensor& dloss, const Tensor& x, const Tensor& target,
                         Reduction reduction);

}  // namespace lockstep::kernels
