#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/scale.h"

namespace lockstep::kernels {

void scale_(const Tensor& x, double factor) {
  LOCKSTEP_CHECK(x.is_dense(), "scale_: expected a dense tensor but got strides {}", x.strides());
  if constexpr (kHasCuda)
    if (x.device().is_cuda()) return factor == 1 ? x.bump_version() : mul_into(x, x, factor);
  x.bump_version();
  if (factor == 1) return;
  visit_floating(x.dtype(), "scale_", [&]<class T>() {
    using A = Accumulator<T>;
    const A f = static_cast<A>(factor);
    T* p = x.data<T>();
    const std::int64_t n = x.numel();
    for (std::int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(static_cast<A>(p[i]) * f);
  });
}

}  // namespace lockstep::kernels
