#include "lockstep/kernels/transcendental.h"

#include "lockstep/kernels/elementwise.h"

namespace lockstep::kernels {

using enum ResultKind;

Tensor exp(const Tensor& x) { return unary_op<kFloating>("exp", pointwise::Exp{}, x); }
Tensor log(const Tensor& x) { return unary_op<kFloating>("log", pointwise::Log{}, x); }
Tensor log1p(const Tensor& x) { return unary_op<kFloating>("log1p", pointwise::Log1p{}, x); }
Tensor sin(const Tensor& x) { return unary_op<kFloating>("sin", pointwise::Sin{}, x); }
Tensor cos(const Tensor& x) { return unary_op<kFloating>("cos", pointwise::Cos{}, x); }
Tensor erf(const Tensor& x) { return unary_op<kFloating>("erf", pointwise::Erf{}, x); }

}  // namespace lockstep::kernels
