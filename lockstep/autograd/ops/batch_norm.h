// Batch normalisation in the graph. Formulas: lockstep/kernels/batch_norm.h.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

// x (N,C), (N,C,L) or (N,C,H,W); weight and bias (C) or undefined (1 and 0); running_mean and
// running_var (C), both defined or both not.
//
// Training, or without running statistics: those of the batch, and running = (1 - momentum) running
// + momentum batch in place, with the unbiased variance. For a cumulative average over n batches
// pass momentum 1 / n. One value per channel has no variance: an Error, and the running statistics
// stay as they are. An empty batch gives an empty result and changes no statistics.
// Evaluation: the running ones.
Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const Tensor& running_mean, const Tensor& running_var, bool training,
                    double momentum = 0.1, double eps = 1e-5);

// relu(batch_norm(…)) as one operation, the same bits.
Variable batch_norm_relu(const Variable& x, const Variable& weight, const Variable& bias,
                         const Tensor& running_mean, const Tensor& running_var, bool training,
                         double momentum = 0.1, double eps = 1e-5);

}  // namespace lockstep
