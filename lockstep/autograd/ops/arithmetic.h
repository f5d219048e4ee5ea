// a + b, a - b, a * b, a / b and their operators. Broadcasting, result dtype: kernels/arithmetic.h.
// Gradients are summed over broadcast axes and have the input's dtype:
//   add: da = dy, db = dy          sub: da = dy, db = -dy
//   mul: da = dy b, db = dy a      div: da = dy / b, db = -dy a / b²
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/operand.h"

namespace lockstep {

Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);
Variable add(const Variable& a, Scalar b);
Variable sub(const Variable& a, Scalar b);
Variable mul(const Variable& a, Scalar b);
Variable div(const Variable& a, Scalar b);
Variable sub(Scalar a, const Variable& b);
Variable div(Scalar a, const Variable& b);
Variable neg(const Variable& x);

// In place. The result must broadcast to x's shape; its category (bool, integer, floating) may not
// be above x's. Throws Error on a leaf that requires a gradient, or a view, while a graph is
// recorded. What an earlier operation saved of x makes that operation's backward an Error.
Variable& add_(Variable& x, const Variable& b);
Variable& sub_(Variable& x, const Variable& b);
Variable& mul_(Variable& x, const Variable& b);
Variable& div_(Variable& x, const Variable& b);
Variable& add_(Variable& x, Scalar b);
Variable& mul_(Variable& x, Scalar b);
// x = src, broadcast and converted; db = dy.
Variable& copy_(Variable& x, const Variable& src);
// x = value; the gradient of what x was is 0.
Variable& fill_(Variable& x, Scalar value);

inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }
inline Variable operator+(const Variable& a, Scalar b) { return add(a, b); }
inline Variable operator-(const Variable& a, Scalar b) { return sub(a, b); }
inline Variable operator*(const Variable& a, Scalar b) { return mul(a, b); }
inline Variable operator/(const Variable& a, Scalar b) { return div(a, b); }
inline Variable operator+(Scalar a, const Variable& b) { return add(b, a); }
inline Variable operator-(Scalar a, const Variable& b) { return sub(a, b); }
inline Variable operator*(Scalar a, const Variable& b) { return mul(b, a); }
inline Variable operator/(Scalar a, const Variable& b) { return div(a, b); }
inline Variable operator-(const Variable& x) { return neg(x); }
inline Variable& operator+=(Variable& x, const Variable& b) { return add_(x, b); }
inline Variable& operator-=(Variable& x, const Variable& b) { return sub_(x, b); }
inline Variable& operator*=(Variable& x, const Variable& b) { return mul_(x, b); }
inline Variable& operator/=(Variable& x, const Variable& b) { return div_(x, b); }

}  // namespace lockstep
