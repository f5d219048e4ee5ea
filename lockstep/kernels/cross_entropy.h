// Softmax and negative log-likelihood in one, over class indices.
#pragma once

#include "lockstep/kernels/loss_options.h"

namespace lockstep::kernels {

// logits (N, C) or (N, C, d1, …) or (C), floating; target (N), (N, d1, …) or (), i64, i32 or u8.
// With p = softmax(logits) over C, e = label_smoothing, t the row's target, w the class weights
// (1 if there are none), per row:
//   l = -(1 - e) w_t log p_t - e/C sum_c w_c log p_c          0 for an ignored row
// kNone returns l in target's shape, kSum its sum, kMean the sum over the sum of the counted rows'
// w_t; kMean over nothing (no rows, or all ignored) is 0. Result in logits' dtype (=, new tensor);
// computed in f32 for f16 and bf16, the sum over rows in f64 and row order.
// Throws Error for a target outside 0 … C-1 that is not ignore_index: names row, label, classes. On
// a CUDA device nothing waits for that: the row counts for nothing, and the next wait for the
// device (item() of the loss) throws.
struct CrossEntropy {
  Tensor loss;
  // Kept for backward: per row the largest logit and sum of exp(x - max), f32 (f64 for f64),
  // (N, 2); on a CUDA device (N + 1, 2), with total_weight at its end.
  Tensor row_stats;
  // Sum of the counted rows' w_t; without weights, their number. 0 on a CUDA device.
  double total_weight = 0;
};
CrossEntropy cross_entropy_forward(const Tensor& logits, const Tensor& target,
                                   const ClassLossOptions& options);

// dx_c = g (((1 - e) w_t + e/C sum_j w_j) p_c - (1 - e) w_t [c = t] - e/C w_c), exactly 0 in
// ignored rows; g = dloss for kSum, dloss / total_weight for kMean, the row's dloss for kNone. New
// tensor (=) with the layout of logits.
Tensor cross_entropy_backward(const Tensor& dloss, const Tensor& logits, const Tensor& target,
                              const Tensor& row_stats, const ClassLossOptions& options);

// Number of targets that are not ignore_index: the weight of a rank's mean loss where ranks or
// micro-batches hold unequal numbers of them.
std::int64_t count_targets(const Tensor& target, std::int64_t ignore_index);

}  // namespace lockstep::kernels
