// Comparisons and logic; the results are bool and have no gradient. Rules: kernels/compare.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/compare.h"

namespace lockstep {

inline Variable eq(const Variable& a, const Variable& b) { return kernels::eq(a.data(), b.data()); }
inline Variable ne(const Variable& a, const Variable& b) { return kernels::ne(a.data(), b.data()); }
inline Variable lt(const Variable& a, const Variable& b) { return kernels::lt(a.data(), b.data()); }
inline Variable le(const Variable& a, const Variable& b) { return kernels::le(a.data(), b.data()); }
inline Variable gt(const Variable& a, const Variable& b) { return kernels::gt(a.data(), b.data()); }
inline Variable ge(const Variable& a, const Variable& b) { return kernels::ge(a.data(), b.data()); }
inline Variable eq(const Variable& a, Scalar b) { return kernels::eq(a.data(), b); }
inline Variable ne(const Variable& a, Scalar b) { return kernels::ne(a.data(), b); }
inline Variable lt(const Variable& a, Scalar b) { return kernels::lt(a.data(), b); }
inline Variable le(const Variable& a, Scalar b) { return kernels::le(a.data(), b); }
inline Variable gt(const Variable& a, Scalar b) { return kernels::gt(a.data(), b); }
inline Variable ge(const Variable& a, Scalar b) { return kernels::ge(a.data(), b); }
inline Variable logical_and(const Variable& a, const Variable& b) {
  return kernels::logical_and(a.data(), b.data());
}
inline Variable logical_or(const Variable& a, const Variable& b) {
  return kernels::logical_or(a.data(), b.data());
}
inline Variable logical_not(const Variable& x) { return kernels::logical_not(x.data()); }
inline Variable isnan(const Variable& x) { return kernels::isnan(x.data()); }
inline Variable isfinite(const Variable& x) { return kernels::isfinite(x.data()); }

}  // namespace lockstep
