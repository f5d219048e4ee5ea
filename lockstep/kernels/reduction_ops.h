// What a reduction does with its elements, on all devices. Internal. A functor has map(x), applied
// to each element once, and combine(a, b); both work on scalars and on the CPU's vectors.
#pragma once

#include <cstdint>

#include "lockstep/kernels/pointwise_arithmetic.h"

namespace lockstep::kernels {

// The functors by name, for code that is told at run time.
enum class ReductionOp { kSum, kSumSquares, kSumAbs, kMax, kMin, kMaxAbs };

namespace reduction {

struct Sum {
  static constexpr ReductionOp kOp = ReductionOp::kSum;
  template <class V>
  static LOCKSTEP_POINTWISE V map(V x) {
    return x;
  }
  template <class V>
  static LOCKSTEP_POINTWISE V combine(V a, V b) {
    return a + b;
  }
  static LOCKSTEP_POINTWISE std::int64_t combine(std::int64_t a, std::int64_t b) {
    return pointwise::plus(a, b);
  }
};
struct SumSquares : Sum {
  static constexpr ReductionOp kOp = ReductionOp::kSumSquares;
  template <class V>
  static LOCKSTEP_POINTWISE V map(V x) {
    return x * x;
  }
};
struct SumAbs : Sum {
  static constexpr ReductionOp kOp = ReductionOp::kSumAbs;
  template <class V>
  static LOCKSTEP_POINTWISE V map(V x) {
    return x < V{} ? -x : x;
  }
};
struct Max {  // NaN is the greatest
  static constexpr ReductionOp kOp = ReductionOp::kMax;
  template <class V>
  static LOCKSTEP_POINTWISE V map(V x) {
    return x;
  }
  template <class V>
  static LOCKSTEP_POINTWISE V combine(V a, V b) {
    return (a != a) | (a > b) ? a : b;
  }
};
struct Min {  // NaN where there is one
  static constexpr ReductionOp kOp = ReductionOp::kMin;
  template <class V>
  static LOCKSTEP_POINTWISE V map(V x) {
    return x;
  }
  template <class V>
  static LOCKSTEP_POINTWISE V combine(V a, V b) {
    return (a != a) | (a < b) ? a : b;
  }
};
struct MaxAbs : Max {
  static constexpr ReductionOp kOp = ReductionOp::kMaxAbs;
  template <class V>
  static LOCKSTEP_POINTWISE V map(V x) {
    return x < V{} ? -x : x;
  }
};

}  // namespace reduction
}  // namespace lockstep::kernels
