#include "lockstep/kernels/compare.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/elementwise.h"

namespace lockstep::kernels {

using enum ResultKind;

Tensor eq(const Operand& a, const Operand& b) {
  return binary_op<kBool>("eq", pointwise::Equal{}, a, b);
}
Tensor ne(const Operand& a, const Operand& b) {
  return binary_op<kBool>("ne", pointwise::NotEqual{}, a, b);
}
Tensor lt(const Operand& a, const Operand& b) {
  return binary_op<kBool>("lt", pointwise::Less{}, a, b);
}
Tensor le(const Operand& a, const Operand& b) {
  return binary_op<kBool>("le", pointwise::LessEqual{}, a, b);
}
Tensor gt(const Operand& a, const Operand& b) { return lt(b, a); }
Tensor ge(const Operand& a, const Operand& b) { return le(b, a); }

Tensor logical_and(const Operand& a, const Operand& b) {
  return binary_op<kBool>("logical_and", pointwise::LogicalAnd{}, a, b);
}
Tensor logical_or(const Operand& a, const Operand& b) {
  return binary_op<kBool>("logical_or", pointwise::LogicalOr{}, a, b);
}
Tensor logical_not(const Tensor& x) {
  return unary_op<kBool>("logical_not", pointwise::LogicalNot{}, x);
}
Tensor isnan(const Tensor& x) { return unary_op<kBool>("isnan", pointwise::IsNan{}, x); }
Tensor isfinite(const Tensor& x) { return unary_op<kBool>("isfinite", pointwise::IsFinite{}, x); }

Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  LOCKSTEP_CHECK(condition.dtype() == DType::kBool, "where: expected a bool condition but got {}",
                 condition.dtype());
  const Operand in[] = {condition, a, b};
  return run_op<kPromoted, Arity::kTernary>("where", pointwise::Where{}, result_dtype(a, b), in);
}

}  // namespace lockstep::kernels
