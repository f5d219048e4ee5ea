// One element of an Adam step, for both devices; adam_step.h has the formulas. Internal.
#pragma once

#include <cmath>

#include "lockstep/kernels/adam_step.h"
#include "lockstep/kernels/scalar_math.h"

namespace lockstep::kernels {

template <class S>
struct AdamScalars {
  S grad_scale, l2, keep;  // keep: the decoupled decay's factor of p
  S fresh1, beta2, fresh2, root_correction2, eps, step_size;
};

template <class S>
AdamScalars<S> adam_scalars(const AdamConfig& c, std::int64_t step) {
  const double t = static_cast<double>(step);
  return {static_cast<S>(c.maximize ? -c.grad_scale : c.grad_scale),
          static_cast<S>(c.decoupled ? 0.0 : c.weight_decay),
          static_cast<S>(c.decoupled ? 1 - c.lr * c.weight_decay : 1.0),
          static_cast<S>(1 - c.beta1),
          static_cast<S>(c.beta2),
          static_cast<S>(1 - c.beta2),
          static_cast<S>(std::sqrt(1 - std::pow(c.beta2, t))),
          static_cast<S>(c.eps),
          static_cast<S>(c.lr / (1 - std::pow(c.beta1, t)))};
}

// The new weight for the weight w and the raw gradient g; the state is read and written, vmax with
// kAmsgrad only.
template <bool kL2, bool kAmsgrad, class S>
LOCKSTEP_POINTWISE S adam_element(S w, S g, S* m, S* v, S* vmax, const AdamScalars<S>& c) {
  g = g * c.grad_scale;
  if constexpr (kL2) g += c.l2 * w;
  w *= c.keep;
  const S first = *m + c.fresh1 * (g - *m);
  S second = c.beta2 * *v + c.fresh2 * (g * g);
  *m = first;
  *v = second;
  if constexpr (kAmsgrad) {
    second = *vmax > second ? *vmax : second;  // a NaN in v stays visible
    *vmax = second;
  }
  const S d = sqrt_of(second) / c.root_correction2 + c.eps;
  return w - c.step_size * (first / d);
}

}  // namespace lockstep::kernels
