// Gradient clipping by norm or by value (torch.nn.utils.clip_grad_norm_ and clip_grad_value_).
#pragma once

#include <span>

#include "lockstep/autograd/variable.h"

namespace lockstep::optim {

// The norm of all gradients as one vector, which is returned; where it exceeds max_norm all
// gradients are multiplied by max_norm / (norm + 1e-6). Squares don't overflow. Where the norm is
// inf or NaN the gradients stay as they are and the norm is returned, or, with error_if_nonfinite,
// Error thrown. Parameters without gradient don't count (none at all: 0), one listed twice counts
// once. norm_type: any positive number, or infinity for the largest magnitude. Throws Error for a
// negative or NaN max_norm.
double clip_grad_norm_(std::span<const Variable> parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);

// Clamps every element of every gradient to [-clip_value, clip_value]; NaN stays NaN. Throws Error
// for a negative or NaN clip_value.
void clip_grad_value_(std::span<const Variable> parameters, double clip_value);

}  // namespace lockstep::optim
