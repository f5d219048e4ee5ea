// Functions of one variable, element by element. Half types compute in f32 and round once; integers
// and bool become f32 (abs and square keep them). Accuracy in f32: kernels/scalar_math.h.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

Variable abs(const Variable& x);         // dx = dy sign(x); 0 at 0
Variable square(const Variable& x);      // dx = 2 dy x
Variable sqrt(const Variable& x);        // dx = dy / (2 y)
Variable rsqrt(const Variable& x);       // 1 / sqrt(x); dx = -dy y³ / 2
Variable reciprocal(const Variable& x);  // 1 / x; dx = -dy y²
Variable exp(const Variable& x);         // dx = dy y
Variable log(const Variable& x);         // dx = dy / x
Variable log1p(const Variable& x);       // log(1 + x); dx = dy / (1 + x)
Variable sin(const Variable& x);         // dx = dy cos(x)
Variable cos(const Variable& x);         // dx = -dy sin(x)
Variable erf(const Variable& x);         // dx = dy 2/sqrt(pi) exp(-x²)

}  // namespace lockstep
