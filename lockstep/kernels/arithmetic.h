// a + b, a - b, a * b, a / b, a ** b, max, min and sign ops, element by element with broadcasting.
//
// Shapes broadcast by NumPy's rule. The result's dtype is PyTorch's (promote.h); half types compute
// in f32 and round once; integers wrap. div of integers and bool gives f32. A 4-D result of a
// channels-last input is channels-last.
#pragma once

#include "lockstep/kernels/operand.h"

namespace lockstep::kernels {

Tensor add(const Operand& a, const Operand& b);
Tensor sub(const Operand& a, const Operand& b);
Tensor mul(const Operand& a, const Operand& b);
Tensor div(const Operand& a, const Operand& b);
// Integers by squaring; throws Error for a negative integer exponent (a number) of an integer.
Tensor pow(const Operand& a, const Operand& b);
// NaN where either is NaN: NaN counts as the greatest for both.
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);  // -1, 0 or 1; 0 for NaN
Tensor square(const Tensor& x);
Tensor sqrt(const Tensor& x);        // floating or f32
Tensor rsqrt(const Tensor& x);       // 1 / sqrt(x), floating or f32
Tensor reciprocal(const Tensor& x);  // 1 / x, floating or f32
// min(max(x, low), high); NaN stays. Use ±infinity for an open end.
Tensor clamp(const Tensor& x, double low, double high);
// dx = dy where low <= x <= high, else 0.
Tensor clamp_backward(const Tensor& dy, const Tensor& x, double low, double high);

// out = a + b etc. in place or into any tensor of the broadcast shape. `out` may be an input.
// Throws Error where the result's category (bool, integer, floating) is above out's. Bumps the
// version.
void add_into(const Tensor& out, const Operand& a, const Operand& b);
void sub_into(const Tensor& out, const Operand& a, const Operand& b);
void mul_into(const Tensor& out, const Operand& a, const Operand& b);
void div_into(const Tensor& out, const Operand& a, const Operand& b);
// out = a + alpha * b.
void add_scaled_into(const Tensor& out, const Operand& a, const Operand& b, double alpha);

}  // namespace lockstep::kernels
