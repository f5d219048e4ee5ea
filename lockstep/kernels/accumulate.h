// The sum that gradients are collected with.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// dst += src, element by element, for two tensors of one shape and floating dtype in any layouts.
// Half types are added in f32 and rounded once. Bumps dst's version.
void accumulate(const Tensor& dst, const Tensor& src);

}  // namespace lockstep::kernels
