// Variance, standard deviation, norms over any axes (none given: all). Formulas, precision, special
// cases: kernels/moments.h.
//   var:  dx = dy 2 (x - mean) / (count - correction)
//   std:  dx = dy (x - mean) / ((count - correction) y), 0 where y = 0
//   norm: L1 dx = dy sign(x); L2 dx = dy x / y, 0 where y = 0; inf: dy sign(x) shared by ties
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/moments.h"

namespace lockstep {

using kernels::Norm;

Variable var(const Variable& x, const Shape& axes = {}, bool unbiased = true, bool keepdim = false);
Variable std(const Variable& x, const Shape& axes = {}, bool unbiased = true, bool keepdim = false);
Variable norm(const Variable& x, Norm kind = Norm::kL2, const Shape& axes = {},
              bool keepdim = false);

}  // namespace lockstep
