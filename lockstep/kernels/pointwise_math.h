// The maths of every element-wise op, written once as functors on scalars for all devices. T is the
// type that an op computes in: float (also for the half types), double, or std::int64_t (all
// integers and bool). A functor's call operator takes the op's inputs in order.
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

// Arithmetic.
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

// Transcendental.
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

// Activations.
template <class T>
LOCKSTEP_POINTWISE T sigmoid_of(T x) {
  return T(1) / (T(1) + exp_of(-x));
}

struct Relu {  // NaN stays
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct ReluBackward {  // dx from (dy, y)
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T dy, T y) const {
    return y > T(0) ? dy : T(0);
  }
};
struct Sigmoid {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return sigmoid_of(x);
  }
};
struct SigmoidBackward {  // dx from (dy, y)
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T dy, T y) const {
    return dy * y * (T(1) - y);
  }
};
struct Silu {  // x * sigmoid(x)
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return x / (T(1) + exp_of(-x));
  }
};
struct SiluBackward {  // dx from (dy, x)
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T dy, T x) const {
    const T s = sigmoid_of(x);
    return dy * s * (T(1) + x * (T(1) - s));
  }
};
struct Gelu {  // x * Phi(x)
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return T(0.5) * x * (T(1) + erf_of(x * T(0.70710678118654752440)));
  }
};
struct GeluBackward {  // dx from (dy, x): dy * (Phi(x) + x * phi(x))
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T dy, T x) const {
    const T cdf = T(0.5) * (T(1) + erf_of(x * T(0.70710678118654752440)));
    const T pdf = T(0.39894228040143267794) * exp_of(T(-0.5) * x * x);
    return dy * (cdf + x * pdf);
  }
};
struct GeluTanh {  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
    return T(0.5) * x * (T(1) + tanh_of(inner));
  }
};
struct GeluTanhBackward {  // dx from (dy, x)
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T dy, T x) const {
    const T beta = T(0.79788456080286535588);
    const T t = tanh_of(beta * (x + T(0.044715) * x * x * x));
    const T slope = beta * (T(1) + T(3 * 0.044715) * x * x);
    return dy * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
  }
};

// Comparisons and tests: the result is bool.
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
