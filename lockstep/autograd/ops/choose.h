// Choosing between values: maximum, minimum, clamp, where. NaN wins in maximum and minimum.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/operand.h"

namespace lockstep {

// The gradient goes to the larger (smaller) one; equal ones take half each.
Variable maximum(const Variable& a, const Variable& b);
Variable minimum(const Variable& a, const Variable& b);
// min(max(x, low), high); dx = dy where low <= x <= high.
Variable clamp(const Variable& x, double low, double high);
Variable clamp_min(const Variable& x, double low);
Variable clamp_max(const Variable& x, double high);
// condition ? a : b, broadcast; the gradient goes to the one taken.
Variable where(const Variable& condition, const Variable& a, const Variable& b);

}  // namespace lockstep
