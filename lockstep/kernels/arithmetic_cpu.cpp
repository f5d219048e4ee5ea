#include "lockstep/core/check.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/elementwise.h"

namespace lockstep::kernels {
namespace {

using enum ResultKind;

template <ResultKind kind, class Op>
void binary_into(const char* name, const Op& op, const Tensor& out, const Operand& a,
                 const Operand& b) {
  const Operand in[] = {a, b};
  const DType dtype = result_dtype(a, b);
  const DType result = kind == kFloating ? floating_or_f32(dtype) : dtype;
  LOCKSTEP_CHECK(!is_floating(result) || is_floating(out.dtype()),
                 "{}: the result is {} and can't be stored in a tensor of {}", name, result,
                 out.dtype());
  LOCKSTEP_CHECK(out.dtype() != DType::kBool || result == DType::kBool,
                 "{}: the result is {} and can't be stored in a tensor of bool", name, result);
  for (const Operand& x : in)
    LOCKSTEP_CHECK(
        !x.is_tensor() || broadcast_shapes(out.shape(), x.tensor().shape(), name) == out.shape(),
        "{}: shape {} does not broadcast to the output's {}", name, x.tensor().shape(),
        out.shape());
  run_op_into<kind, Arity::kBinary>(name, op, out, dtype, in);
}

}  // namespace

Tensor add(const Operand& a, const Operand& b) {
  return binary_op<kPromoted>("add", pointwise::Add{}, a, b);
}
Tensor sub(const Operand& a, const Operand& b) {
  return binary_op<kPromoted>("sub", pointwise::Sub{}, a, b);
}
Tensor mul(const Operand& a, const Operand& b) {
  return binary_op<kPromoted>("mul", pointwise::Mul{}, a, b);
}
Tensor div(const Operand& a, const Operand& b) {
  return binary_op<kFloating>("div", pointwise::Div{}, a, b);
}
Tensor pow(const Operand& a, const Operand& b) {
  LOCKSTEP_CHECK(b.is_tensor() || is_floating(result_dtype(a, b)) || b.scalar().integer() >= 0,
                 "pow: integers to the negative power {} are no integers; cast to a floating dtype",
                 b.scalar().integer());
  if (a.is_tensor() && !b.is_tensor() && is_floating(a.tensor().dtype())) {
    // Rounded once and vectorised.
    if (b.scalar().real() == 2) return square(a.tensor());
    if (b.scalar().real() == 1) return a.tensor().clone();
    if (b.scalar().real() == 0.5) return sqrt(a.tensor());
    if (b.scalar().real() == -1) return reciprocal(a.tensor());
  }
  return binary_op<kPromoted>("pow", pointwise::Pow{}, a, b);
}
Tensor maximum(const Operand& a, const Operand& b) {
  return binary_op<kPromoted>("maximum", pointwise::Maximum{}, a, b);
}
Tensor minimum(const Operand& a, const Operand& b) {
  return binary_op<kPromoted>("minimum", pointwise::Minimum{}, a, b);
}

Tensor neg(const Tensor& x) { return unary_op<kPromoted>("neg", pointwise::Neg{}, x); }
Tensor abs(const Tensor& x) { return unary_op<kPromoted>("abs", pointwise::Abs{}, x); }
Tensor sign(const Tensor& x) { return unary_op<kPromoted>("sign", pointwise::Sign{}, x); }
Tensor square(const Tensor& x) { return unary_op<kPromoted>("square", pointwise::Square{}, x); }
Tensor sqrt(const Tensor& x) { return unary_op<kFloating>("sqrt", pointwise::Sqrt{}, x); }
Tensor rsqrt(const Tensor& x) { return unary_op<kFloating>("rsqrt", pointwise::Rsqrt{}, x); }
Tensor reciprocal(const Tensor& x) {
  return unary_op<kFloating>("reciprocal", pointwise::Reciprocal{}, x);
}
Tensor clamp(const Tensor& x, double low, double high) {
  return unary_op<kPromoted>("clamp", pointwise::Clamp{low, high}, x);
}
Tensor clamp_backward(const Tensor& dy, const Tensor& x, double low, double high) {
  return backward_op("clamp", pointwise::ClampBackward{low, high}, dy, x);
}

void add_into(const Tensor& out, const Operand& a, const Operand& b) {
  binary_into<kPromoted>("add", pointwise::Add{}, out, a, b);
}
void sub_into(const Tensor& out, const Operand& a, const Operand& b) {
  binary_into<kPromoted>("sub", pointwise::Sub{}, out, a, b);
}
void mul_into(const Tensor& out, const Operand& a, const Operand& b) {
  binary_into<kPromoted>("mul", pointwise::Mul{}, out, a, b);
}
void div_into(const Tensor& out, const Operand& a, const Operand& b) {
  binary_into<kFloating>("div", pointwise::Div{}, out, a, b);
}
void add_scaled_into(const Tensor& out, const Operand& a, const Operand& b, double alpha) {
  binary_into<kPromoted>("add", pointwise::AddScaled{alpha}, out, a, b);
}

}  // namespace lockstep::kernels
