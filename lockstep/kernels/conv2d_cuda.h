// conv2d.h on CUDA devices. Internal.
#pragma once

#include "lockstep/kernels/conv2d_plan.h"

namespace lockstep::kernels::cuda {

// Our own implicit GEMM. As in conv2d_plan.h, but weights and their gradients are channels-last
// too: (K, R, S, C/G) in memory. Any floating dtype, sums in f32 (f64 for f64).
void conv2d_forward(const ConvPlan&, const Tensor& x, const Tensor& w, const Tensor& b, bool relu,
                    const Tensor& y);
void conv2d_backward_data(const ConvPlan&, const Tensor& dy, const Tensor& w, const Tensor& dx);
void conv2d_backward_weights(const ConvPlan&, const Tensor& dy, const Tensor& x, const Tensor& dw);

}  // namespace lockstep::kernels::cuda
