// Comparisons, logic and selection, element by element with broadcasting. Comparisons promote their
// operands (promote.h) and give bool; comparing with NaN is false but for ne.
#pragma once

#include "lockstep/kernels/operand.h"

namespace lockstep::kernels {

Tensor eq(const Operand& a, const Operand& b);
Tensor ne(const Operand& a, const Operand& b);
Tensor lt(const Operand& a, const Operand& b);
Tensor le(const Operand& a, const Operand& b);
Tensor gt(const Operand& a, const Operand& b);
Tensor ge(const Operand& a, const Operand& b);

// Operands of any dtype; != 0 is true.
Tensor logical_and(const Operand& a, const Operand& b);
Tensor logical_or(const Operand& a, const Operand& b);
Tensor logical_not(const Tensor& x);

Tensor isnan(const Tensor& x);
Tensor isfinite(const Tensor& x);

// condition ? a : b. The condition must be bool; a and b promote.
Tensor where(const Tensor& condition, const Operand& a, const Operand& b);

}  // namespace lockstep::kernels
