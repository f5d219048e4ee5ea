// Argument checks that the fused optimizer kernels share. For the kernels' sources only.
#pragma once

#include <string_view>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// param is dense and floating; grad has its dtype, shape and strides. Throws Error.
void check_segment_grad(std::string_view op, const Tensor& param, const Tensor& grad);

// state has param's shape and strides and its state dtype (f64 for f64, else f32). Throws Error.
void check_segment_state(std::string_view op, const Tensor& param, const Tensor& state,
                         std::string_view name);

}  // namespace lockstep::kernels
