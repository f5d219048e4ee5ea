// Binary cross-entropy of sigmoid(x). Formula and errors: kernels/bce_with_logits.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/bce_with_logits.h"

namespace lockstep {

using kernels::BceOptions;

// x and target (in [0, 1]) of one shape and dtype; both get gradients if they want them, the
// options' weights don't.
Variable binary_cross_entropy_with_logits(const Variable& x, const Variable& target,
                                          const BceOptions& options = {});

}  // namespace lockstep
