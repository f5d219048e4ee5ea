// Norm, scaling and clamping of many gradients in one pass each.
#pragma once

#include <span>

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/isa.h"

namespace lockstep::kernels {

// The p-norm of all elements of all tensors as if they were one vector: (sum |x|^p)^(1/p); p = inf
// gives max |x|; 0 for no elements. Any floating dtypes and layouts. Sums are f64, of f64 tensors
// scaled by their largest element, so that squares never overflow or vanish. inf or NaN among the
// elements gives a non-finite result. The order of summation is fixed: same bits at every level and
// number of threads. Throws Error unless p > 0.
double grad_norm(std::span<const Tensor> tensors, double p = 2, Isa isa = best_isa());

// x = x * factor, the product taken in f64 and rounded once. Bumps the versions.
void scale_in_place(std::span<const Tensor> tensors, double factor, Isa isa = best_isa());

// x = min(max(x, -limit), limit); NaN stays NaN. Bumps the versions.
void clamp_in_place(std::span<const Tensor> tensors, double limit, Isa isa = best_isa());

}  // namespace lockstep::kernels
