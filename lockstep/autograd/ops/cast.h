// x in another dtype. Rounding and saturation: kernels/convert.h.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

// x itself if it has the dtype. Backward casts dy to x's dtype; a result that is not floating has
// no gradient.
Variable to(const Variable& x, DType dtype);

}  // namespace lockstep
