// Binary cross-entropy of sigmoid(x), without forming the sigmoid.
#pragma once

#include "lockstep/kernels/loss_options.h"

namespace lockstep::kernels {

struct BceOptions {
  Reduction reduction = Reduction::kMean;
  Tensor weight = {};  // undefined, or w, broadcast to x's shape
  Tensor pos_weight =
      {};  // undefined, or q, broadcast to x's shape: the weight of positive targets
};

// x and target t in [0, 1]: one shape and dtype (floating), any layouts; other shapes are an Error
// that names both. With q = w = 1 where not given:
//   l_i = w_i ((1 - t_i) x_i + (1 + (q_i - 1) t_i) (log(1 + exp(-|x_i|)) + max(-x_i, 0)))
// Reductions as in mse_loss.h (kMean over the number of elements, also with weights). Computed in
// f32 for the half types, summed in f64. New tensor (=).
Tensor bce_with_logits_forward(const Tensor& x, const Tensor& target, const BceOptions& options);

// dx_i = g w_i ((1 - t_i) - (1 + (q_i - 1) t_i) sigmoid(-x_i))
Tensor bce_with_logits_backward(const Tensor& dloss, const Tensor& x, const Tensor& target,
                                const BceOptions& options);
// dt_i = g w_i (-x_i + (q_i - 1) (log(1 + exp(-|x_i|)) + max(-x_i, 0)))
Tensor bce_with_logits_backward_target(const Tensor& dloss, const Tensor& x, const Tensor& target,
                                       const BceOptions& options);

}  // namespace lockstep::kernels
