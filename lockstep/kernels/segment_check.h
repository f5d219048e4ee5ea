// Argument checks that the fused optimizer kernels share. For the kernels' sources only.
#pragma once

#include <span>
#include <string_view>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// param is on the device of the first segment's. Throws Error naming both.
void check_segment_device(std::string_view op, const Tensor& param, const Tensor& first);

template <class Segment>
bool is_on_cuda(std::span<const Segment> segments, Tensor Segment::*param) {
  return !segments.empty() && (segments.front().*param).device().is_cuda();
}

// param is dense and floating; grad has its dtype, device, shape and strides. Throws Error.
void check_segment_grad(std::string_view op, const Tensor& param, const Tensor& grad);

// state has param's shape, strides and device and its state dtype (f64 for f64, else f32). Throws
// Error.
void check_segment_state(std::string_view op, const Tensor& param, const Tensor& state,
                         std::string_view name);

}  // namespace lockstep::kernels
