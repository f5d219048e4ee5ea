// Losses' most used: softmax and negative log-likelihood in one. Formula, shapes, reductions and
// errors: kernels/cross_entropy.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/loss_options.h"

namespace lockstep {

// logits (N, C), (N, C, d1, …) or (C) against class indices; the gradient goes to the logits.
Variable cross_entropy(const Variable& logits, const Tensor& target,
                       const ClassLossOptions& options = {});

// Number of targets that count. Where ranks or micro-batches hold unequal numbers of them, the mean
// over all is the sum of their kSum losses over the sum of these.
std::int64_t count_targets(const Tensor& target, std::int64_t ignore_index = -100);

}  // namespace lockstep
