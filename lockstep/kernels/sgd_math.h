// One element of an SGD step, for both devices; sgd_step.h has the formulas. Internal.
#pragma once

#include "lockstep/kernels/scalar_math.h"
#include "lockstep/kernels/sgd_step.h"

namespace lockstep::kernels {

enum class Velocity { kNone, kPlain, kNesterov };

inline Velocity velocity_of(const SgdConfig& config) {
  if (config.momentum == 0) return Velocity::kNone;
  return config.nesterov ? Velocity::kNesterov : Velocity::kPlain;
}

template <class S>
struct SgdScalars {
  S lr, momentum, keep, fresh, weight_decay, grad_scale;  // v = keep * v + fresh * g
};

template <class S>
SgdScalars<S> sgd_scalars(const SgdConfig& config, bool first) {
  return {static_cast<S>(config.lr),
          static_cast<S>(config.momentum),
          first ? S(0) : static_cast<S>(config.momentum),
          first ? S(1) : static_cast<S>(1 - config.dampening),
          static_cast<S>(config.weight_decay),
          static_cast<S>(config.maximize ? -config.grad_scale : config.grad_scale)};
}

// The new weight for the weight w and the raw gradient g; v is read and written unless kNone.
template <Velocity kVelocity, bool kDecay, class S>
LOCKSTEP_POINTWISE S sgd_element(S w, S g, S* v, const SgdScalars<S>& c) {
  g = g * c.grad_scale;
  if constexpr (kDecay) g += c.weight_decay * w;
  if constexpr (kVelocity != Velocity::kNone) {
    const S velocity = c.keep * *v + c.fresh * g;
    *v = velocity;
    g = kVelocity == Velocity::kNesterov ? g + c.momentum * velocity : velocity;
  }
  return w - c.lr * g;
}

}  // namespace lockstep::kernels
