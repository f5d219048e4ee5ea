// Variance, standard deviation and norms over any axes (none given: all). Floating dtypes; half
// types compute in f32 and round once.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// sum((x - mean)²) / (count - correction), in two passes, so that a large mean costs no precision.
// NaN where count <= correction. correction 1 is the unbiased estimate, 0 the biased one.
Tensor var(const Tensor& x, const Shape& axes = {}, int correction = 1, bool keepdim = false);
Tensor std(const Tensor& x, const Shape& axes = {}, int correction = 1, bool keepdim = false);
// dx = dy * 2 (x - mean) / (count - correction); dy has the reduced axes as size 1.
Tensor var_backward(const Tensor& dy, const Tensor& x, const Shape& axes, int correction);

// |x|₁ = sum |x|, |x|₂ = sqrt(sum x²), |x|∞ = max |x|.
enum class Norm { kL1, kL2, kInf };
// L2 sums squares in f64 (of an f64 tensor: scaled by the largest |x|), so that neither overflow
// nor underflow of a square spoils it. Norm of nothing: 0. NaN and inf in x give NaN and inf.
Tensor norm(const Tensor& x, Norm kind = Norm::kL2, const Shape& axes = {}, bool keepdim = false);

}  // namespace lockstep::kernels
