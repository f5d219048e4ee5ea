// Layer normalisation. Formula and dtypes: kernels/layer_norm.h.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

// Over the trailing axes of x, which must be `normalized_shape`. weight and bias: undefined, or of
// that shape, in any floating dtype.
Variable layer_norm(const Variable& x, const Shape& normalized_shape, const Variable& weight = {},
                    const Variable& bias = {}, double eps = 1e-5);

}  // namespace lockstep
