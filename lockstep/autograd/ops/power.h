// x to the power y, with broadcasting. dtype rules: kernels/arithmetic.h.
//   dx = dy y x^(y-1) (0 where y = 0)      dy' = dy x^y log(x) (0 where x = 0 and y >= 0)
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/operand.h"

namespace lockstep {

Variable pow(const Variable& x, const Variable& y);
Variable pow(const Variable& x, Scalar y);
Variable pow(Scalar x, const Variable& y);

}  // namespace lockstep
