// Convolutions by cuDNN. Internal.
#pragma once

#include "lockstep/kernels/conv2d_plan.h"

namespace lockstep::kernels::cuda {

// As conv2d_cuda.h's functions, without a bias. False where the build has no cuDNN, or cuDNN no
// kernel for the case that gives the same bits each time.
bool conv2d_cudnn_forward(const ConvPlan&, const Tensor& x, const Tensor& w, const Tensor& y);
bool conv2d_cudnn_backward_data(const ConvPlan&, const Tensor& dy, const Tensor& w,
                                const Tensor& dx);
bool conv2d_cudnn_backward_weights(const ConvPlan&, const Tensor& dy, const Tensor& x,
                                   const Tensor& dw);

}  // namespace lockstep::kernels::cuda
