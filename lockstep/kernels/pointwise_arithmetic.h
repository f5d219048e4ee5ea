// Functors of arithmetic: sums, products, powers, signs, larger and smaller.
// See pointwise_math.h for what T is. Internal: of pointwise_math.h.
#pragma once

#include "lockstep/kernels/scalar_math.h"

namespace lockstep::kernels::pointwise {

// Integers wrap, as two's complement does, instead of overflowing.
LOCKSTEP_POINTWISE float plus(float a, float b) { return a + b; }
LOCKSTEP_POINTWISE double plus(double a, double b) { return a + b; }
LOCKSTEP_POINTWISE std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
LOCKSTEP_POINTWISE float minus(float a, float b) { return a - b; }
LOCKSTEP_POINTWISE double minus(double a, double b) { return a - b; }
LOCKSTEP_POINTWISE std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
LOCKSTEP_POINTWISE float times(float a, float b) { return a * b; }
LOCKSTEP_POINTWISE double times(double a, double b) { return a * b; }
LOCKSTEP_POINTWISE std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

struct Add {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T a, T b) const {
    return plus(a, b);
  }
};
struct Sub {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T a, T b) const {
    return minus(a, b);
  }
};
struct Mul {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T a, T b) const {
    return times(a, b);
  }
};
struct Div {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T a, T b) const {
    return a / b;
  }
};
struct AddScaled {  // a + alpha * b
  double alpha;
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T a, T b) const {
    return plus(a, times(static_cast<T>(alpha), b));
  }
};
struct Neg {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return minus(T(0), x);
  }
  LOCKSTEP_POINTWISE float operator()(float x) const { return -x; }
  LOCKSTEP_POINTWISE double operator()(double x) const { return -x; }
};
struct Abs {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return x < T(0) ? minus(T(0), x) : x;
  }
  LOCKSTEP_POINTWISE float operator()(float x) const { return __builtin_fabsf(x); }
  LOCKSTEP_POINTWISE double operator()(double x) const { return __builtin_fabs(x); }
};
struct Sign {  // -1, 0, 1; 0 for NaN, as torch
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0);
  }
};
struct Square {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return times(x, x);
  }
};
struct Reciprocal {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return T(1) / x;
  }
};
struct Sqrt {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return sqrt_of(x);
  }
};
struct Rsqrt {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return T(1) / sqrt_of(x);
  }
};
struct Pow {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x, T y) const {
    return pow_of(x, y);
  }
  // By squaring; a negative exponent is refused before.
  LOCKSTEP_POINTWISE std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    std::int64_t r = 1;
    for (; y > 0; y >>= 1) {
      r = (y & 1) ? times(r, x) : r;
      x = times(x, x);
    }
    return r;
  }
};

// The larger / smaller; NaN where either is NaN ("NaN is the greatest" for both, as torch).
struct Maximum {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};
struct Clamp {  // min(max(x, low), high); NaN stays
  double low, high;
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    const T lo = static_cast<T>(low), hi = static_cast<T>(high);
    const T y = x < lo ? lo : x;
    return y > hi ? hi : y;
  }
};
struct ClampBackward {  // dx from (dy, x)
  double low, high;
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T dy, T x) const {
    return x < static_cast<T>(low) || x > static_cast<T>(high) ? T(0) : dy;
  }
};

}  // namespace lockstep::kernels::pointwise
