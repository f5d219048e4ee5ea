// extremum.h on CUDA devices: values and indices along one axis. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels::cuda {

// x has at least one axis and elements along `axis`; values and indices are contiguous, of x's
// shape without the axis.
void extremum_along(const Tensor& x, int axis, bool greatest, const Tensor& values,
                    const Tensor& indices);

}  // namespace lockstep::kernels::cuda
