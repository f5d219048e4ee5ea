#include "lockstep/autograd/ops/power.h"

#include "lockstep/autograd/ops/broadcast.h"
#include "lockstep/autograd/record.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/compare.h"
#include "lockstep/kernels/transcendental.h"

namespace lockstep {
namespace {

Tensor base_gradient(const Tensor& dy, const Tensor& x, const kernels::Operand& y) {
  const Tensor slope =
      kernels::mul(kernels::pow(x, kernels::sub(y, ones({}, {dy.dtype(), dy.device()}))), y);
  // 0 * x^-1 is NaN at x = 0, but the slope of a constant is 0.
  return kernels::mul(
      dy, kernels::where(kernels::eq(y, zeros({}, {dy.dtype(), dy.device()})), 0.0, slope));
}

Tensor exponent_gradient(const Tensor& dy, const kernels::Operand& x, const Tensor& y,
                         const Tensor& result) {
  const Tensor log_x = kernels::log(
      x.is_tensor() ? x.tensor() : full({}, x.scalar().real(), {dy.dtype(), dy.device()}));
  const Tensor flat = kernels::logical_and(kernels::eq(x, zeros({}, {dy.dtype(), dy.device()})),
                                           kernels::ge(y, 0.0));
  return kernels::mul(dy, kernels::where(flat, 0.0, kernels::mul(result, log_x)));
}

}  // namespace

Variable pow(const Variable& x, const Variable& y) {
  return record("pow", kernels::pow(x.data(), y.data()), inputs(x, y), [&](const Tensor& result) {
    const bool exponent = y.requires_grad();
    return
        [fx = InputForm(x), fy = InputForm(y), x = SavedTensor(x.data()), y = SavedTensor(y.data()),
         result = exponent ? SavedTensor(result) : SavedTensor()](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] { return fx.undo(base_gradient(dy, x.get(), y.get())); });
          dx.set(1, [&] { return fy.undo(exponent_gradient(dy, x.get(), y.get(), result.get())); });
        };
  });
}

Variable pow(const Variable& x, Scalar y) {
  return record("pow", kernels::pow(x.data(), y), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data()), y](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        if (y.real() == 0) return zeros_like(dy);
        const Tensor slope = kernels::mul(kernels::pow(x.get(), y.real() - 1), y);
        return kernels::mul(dy, slope);
      });
    };
  });
}

Variable pow(Scalar x, const Variable& y) {
  return record("pow", kernels::pow(x, y.data()), inputs(y), [&](const Tensor& result) {
    return [x, y = SavedTensor(y.data()), result = SavedTensor(result)](const Tensor& dy,
                                                                        Gradients& dx) {
      dx.set(0, [&] { return exponent_gradient(dy, x, y.get(), result.get()); });
    };
  });
}

}  // namespace lockstep
