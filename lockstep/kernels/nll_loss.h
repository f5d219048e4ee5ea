// Negative log-likelihood of log-probabilities, over class indices.
#pragma once

#include "lockstep/kernels/loss_options.h"

namespace lockstep::kernels {

// log_probs (N, C), (N, C, d1, …) or (C), floating; targets, weights, reductions, ignored rows and
// errors as in cross_entropy.h (label_smoothing does not apply). Per row l = -w_t x_t.
struct NllLoss {
  Tensor loss;
  double total_weight = 0;  // sum of the counted rows' w_t
};
NllLoss nll_loss_forward(const Tensor& log_probs, const Tensor& target,
                         const ClassLossOptions& options);

// dx_c = -g w_t [c = t], g as in cross_entropy.h. New tensor (=) with the layout of log_probs.
Tensor nll_loss_backward(const Tensor& dloss, const Tensor& log_probs, const Tensor& target,
                         const ClassLossOptions& options);

}  // namespace lockstep::kernels
