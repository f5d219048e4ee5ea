// Squared error. Formula and errors: kernels/mse_loss.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/loss_options.h"

namespace lockstep {

// x and target of one shape and dtype; both get gradients if they want them.
Variable mse_loss(const Variable& x, const Variable& target,
                  Reduction reduction = Reduction::kMean);

}  // namespace lockstep
