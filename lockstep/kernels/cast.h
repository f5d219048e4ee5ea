// Casts, copies between any two tensors, and filling.
//
// Rounding and saturation: convert.h (to nearest even; floating to integer truncates, saturates,
// NaN gives 0; to bool != 0).
#pragma once

#include "lockstep/kernels/operand.h"

namespace lockstep::kernels {

// x in another dtype, in the layout of a dense x; x itself if it has the dtype already.
Tensor cast(const Tensor& x, DType dtype);
// dst = src, with broadcasting and conversion. src may overlap dst. Bumps dst's version.
void copy_into(const Tensor& dst, const Tensor& src);
// Every element = value, converted to the dtype. Bumps the version.
void fill(const Tensor& x, Scalar value);

}  // namespace lockstep::kernels
