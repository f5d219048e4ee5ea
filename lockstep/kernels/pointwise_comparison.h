// Functors of comparisons, logic and choice.
// See pointwise_math.h for what T is. Internal: of pointwise_math.h.
#pragma once

#include "lockstep/kernels/scalar_math.h"

namespace lockstep::kernels::pointwise {

// The result is bool, but for Where.
struct Equal {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct LogicalAnd {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a, T b) const {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a, T b) const {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalNot {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a) const {
    return a == T(0);
  }
};
struct IsNan {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a) const {
    return a != a;
  }
};
struct IsFinite {
  template <class T>
  LOCKSTEP_POINTWISE bool operator()(T a) const {
    return a - a == T(0);
  }
  LOCKSTEP_POINTWISE bool operator()(std::int64_t) const { return true; }
};

struct Where {  // condition ? a : b
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T condition, T a, T b) const {
    return condition != T(0) ? a : b;
  }
};

}  // namespace lockstep::kernels::pointwise
