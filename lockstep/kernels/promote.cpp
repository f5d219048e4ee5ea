#include "lockstep/kernels/promote.h"

namespace lockstep::kernels {
namespace {

enum Category { kBoolean, kInteger, kReal };

Category category(DType dtype) {
  if (is_floating(dtype)) return kReal;
  return dtype == kBool ? kBoolean : kInteger;
}

int integer_rank(DType dtype) {
  switch (dtype) {
    case kBool:
      return 0;
    case kU8:
      return 1;
    case kI32:
      return 2;
    default:
      return 3;
  }
}

// How much an operand has to say: a tensor with dimensions, one without, a number.
int priority(const Operand& x) { return x.is_tensor() ? (x.tensor().dim() > 0 ? 2 : 1) : 0; }

DType own_dtype(const Operand& x) {
  if (x.is_tensor()) return x.tensor().dtype();
  return x.scalar().is_integer() ? kI64 : kF32;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  const bool fa = is_floating(a), fb = is_floating(b);
  if (fa && fb) return a == kF64 || b == kF64 ? kF64 : kF32;
  if (fa) return a;
  if (fb) return b;
  return integer_rank(a) > integer_rank(b) ? a : b;
}

DType result_dtype(const Operand& a, const Operand& b) {
  const DType da = own_dtype(a), db = own_dtype(b);
  if (da == db) return da;
  const int pa = priority(a), pb = priority(b);
  if (pa == pb) return promote(da, db);
  const DType strong = pa > pb ? da : db, weak = pa > pb ? db : da;
  return category(weak) > category(strong) ? promote(strong, weak) : strong;
}

DType floating_or_f32(DType dtype) { return is_floating(dtype) ? dtype : kF32; }

DType compute_dtype(DType dtype) {
  if (dtype == kF64) return kF64;
  return is_floating(dtype) ? kF32 : kI64;
}

}  // namespace lockstep::kernels
