// Softmax and log-softmax. Formulas, layouts and special values: kernels/softmax.h.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

// Along `axis` (negative counts from the back); result and gradient have x's dtype and layout.
// Throws Error for an axis out of range or a dtype that is not floating.
Variable softmax(const Variable& x, std::int64_t axis);
Variable log_softmax(const Variable& x, std::int64_t axis);

}  // namespace lockstep
