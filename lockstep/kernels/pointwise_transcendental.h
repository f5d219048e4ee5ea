// Functors of exp, log, sin, tanh, erf and their like.
// See pointwise_math.h for what T is. Internal: of pointwise_math.h.
#pragma once

#include "lockstep/kernels/scalar_math.h"

namespace lockstep::kernels::pointwise {

struct Exp {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return exp_of(x);
  }
};
struct Log {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return log_of(x);
  }
};
struct Log1p {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return log1p_of(x);
  }
};
struct Sin {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return sin_of(x);
  }
};
struct Cos {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return cos_of(x);
  }
};
struct Tanh {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return tanh_of(x);
  }
};
struct TanhBackward {  // dx from (dy, y)
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T dy, T y) const {
    return dy * (T(1) - y * y);
  }
};
struct Erf {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return erf_of(x);
  }
};

}  // namespace lockstep::kernels::pointwise
