// Functors of activations and their derivatives.
// See pointwise_math.h for what T is. Internal: of pointwise_math.h.
#pragma once

#include "lockstep/kernels/scalar_math.h"

namespace lockstep::kernels::pointwise {

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

}  // namespace lockstep::kernels::pointwise
