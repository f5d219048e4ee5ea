// exp, log, log1p, sin, cos, erf: integers and bool become f32, half types compute in f32 and round
// once. Accuracy in f32: scalar_math.h.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);    // -inf for 0, NaN below
Tensor log1p(const Tensor& x);  // log(1 + x)
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor erf(const Tensor& x);

}  // namespace lockstep::kernels
