// Max pooling of images.
//
//   y[n,c,p,q] = max over window positions (r,s) inside the image of
//                x[n, c, p stride - padding + r dilation, q stride - padding + s dilation]
//   dx = dy at the position of the maximum, summed over windows, 0 elsewhere
//
// A NaN is greater than any number (a maximum never hides one); of equal values the first in
// row-major order wins. dtypes f32, f64, f16, bf16; overlapping windows are summed in f32 (f64).
#pragma once

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/pool2d_window.h"

namespace lockstep::kernels {

struct MaxPool2dResult {
  Tensor y;     // (N,C,P,Q)
  Tensor taps;  // (N,P,Q,C) u8: r KW + s of each maximum
};

// y is channels-last, or contiguous if `format` says so: before a flatten, that saves a copy. The
// kernel has at most 256 positions.
MaxPool2dResult max_pool2d_forward(const Tensor& x, const Pool2dOptions& options,
                                   MemoryFormat format = MemoryFormat::kChannelsLast);

// dx of shape `x`, channels-last. dy may have any layout; contiguous and channels-last cost no
// copy.
Tensor max_pool2d_backward(const Tensor& dy, const Tensor& taps, const Shape& x,
                           const Pool2dOptions& options);

}  // namespace lockstep::kernels
