// Negative log-likelihood of log-probabilities. Formula, shapes and errors: kernels/nll_loss.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/loss_options.h"

namespace lockstep {

// log_probs (N, C), (N, C, d1, …) or (C) against class indices.
Variable nll_loss(const Variable& log_probs, const Tensor& target,
                  const ClassLossOptions& options = {});

}  // namespace lockstep
