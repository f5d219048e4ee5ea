// relu, sigmoid, tanh, silu, gelu. Formulas: kernels/pointwise_math.h. Result and gradient have x's
// dtype and layout (integers: f32, but for relu).
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/activation.h"

namespace lockstep {

using kernels::GeluApproximation;

Variable relu(const Variable& x);     // gradient 0 at 0; NaN stays
Variable sigmoid(const Variable& x);  // dx = dy y (1 - y)
Variable tanh(const Variable& x);     // dx = dy (1 - y²)
Variable silu(const Variable& x);
Variable gelu(const Variable& x, GeluApproximation approximation = GeluApproximation::kNone);

}  // namespace lockstep
