// Conversions on CUDA devices. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels::cuda {

// dst = src, on one device, with broadcasting and conversion, by the rules of convert.h. No overlap
// but the same elements.
void convert(const Tensor& dst, const Tensor& src);

}  // namespace lockstep::kernels::cuda
