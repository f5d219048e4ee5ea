#include "lockstep/autograd/ops/moments.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/compare.h"
#include "lockstep/kernels/promote.h"
#include "lockstep/kernels/reduction.h"
#include "lockstep/kernels/sum.h"

namespace lockstep {
namespace {

Shape kept_shape(const char* name, const Variable& x, const Shape& axes) {
  return kernels::reduced_shape(x.shape(), kernels::axis_set(axes, x.dim(), name), true);
}

// a / b, 0 where b is 0.
Tensor ratio(const Tensor& a, const Tensor& b) {
  return kernels::where(kernels::eq(b, 0), 0.0, kernels::div(a, b));
}

Tensor norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& y, Norm kind,
                     const Shape& axes) {
  if (kind == Norm::kL1) return kernels::mul(dy, kernels::sign(x));
  // x / y first: it is at most 1, so nothing overflows on the way.
  if (kind == Norm::kL2) return kernels::mul(ratio(x, y), dy);
  const Tensor ties = kernels::eq(kernels::abs(x), y);
  const Tensor share = kernels::div(dy, kernels::sum(ties, axes, true));
  return kernels::where(ties, kernels::mul(kernels::sign(x), share), 0.0);
}

}  // namespace

Variable var(const Variable& x, const Shape& axes, bool unbiased, bool keepdim) {
  const int correction = unbiased ? 1 : 0;
  Tensor y = kernels::var(x.data(), axes, correction, keepdim);
  return record("var", std::move(y), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data()), kept = kept_shape("var", x, axes), axes, correction](
               const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::var_backward(dy.reshape(kept), x.get(), axes, correction); });
    };
  });
}

Variable std(const Variable& x, const Shape& axes, bool unbiased, bool keepdim) {
  const int correction = unbiased ? 1 : 0;
  Tensor y = kernels::std(x.data(), axes, correction, keepdim);
  return record("std", std::move(y), inputs(x), [&](const Tensor& y) {
    return [x = SavedTensor(x.data()), y = SavedTensor(y), kept = kept_shape("std", x, axes), axes,
            correction](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        const DType wide = kernels::compute_dtype(dy.dtype());
        const Tensor half = kernels::mul(kernels::cast(dy, wide), 0.5);
        const Tensor slope = ratio(half, kernels::cast(y.get(), wide)).reshape(kept);
        return kernels::var_backward(slope, x.get(), axes, correction);
      });
    };
  });
}

Variable norm(const Variable& x, Norm kind, const Shape& axes, bool keepdim) {
  Tensor y = kernels::norm(x.data(), kind, axes, keepdim);
  return record("norm", std::move(y), inputs(x), [&](const Tensor& y) {
    return [x = SavedTensor(x.data()), y = SavedTensor(y), kept = kept_shape("norm", x, axes), axes,
            kind](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        return norm_gradient(dy.reshape(kept), x.get(), y.get().reshape(kept), kind, axes);
      });
    };
  });
}

}  // namespace lockstep
