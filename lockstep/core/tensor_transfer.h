// What tensors ask of their device's memory. Internal: not for embedders.
#pragma once

#include "lockstep/core/tensor_handle.h"

namespace lockstep::detail {

// dst = src, of one shape and dtype in any layouts, where at least one is on a CUDA device. On the
// current streams; waits for the device unless `non_blocking` or both are on one device.
void copy_with_device(const Tensor& dst, const Tensor& src, bool non_blocking);
void zero_on_device(const Tensor& tensor);
// Every element = the one at `element`, host memory of the tensor's dtype.
void fill_on_device(const Tensor& tensor, const void* element);

}  // namespace lockstep::detail
