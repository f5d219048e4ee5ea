// Multiplication by a constant in place.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// x *= factor for a dense tensor of a floating dtype; half types in f32, rounded once. Bumps the
// version. A factor of 1 leaves the memory untouched.
void scale_(const Tensor& x, double factor);

}  // namespace lockstep::kernels
