// max_pool2d.h on CUDA devices. Internal.
#pragma once

#include "lockstep/kernels/max_pool2d.h"

namespace lockstep::kernels::cuda {

// x channels-last, y of any strides, taps (N,P,Q,C); y has elements.
void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y,
                        const Tensor& taps);
// dy of any strides, dx channels-last with elements; sums in f32 (f64), rounded once.
void max_pool2d_backward(const Tensor& dy, const Tensor& taps, const Pool2dOptions& options,
                         const Tensor& dx);

}  // namespace lockstep::kernels::cuda
