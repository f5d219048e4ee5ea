#include "lockstep/autograd/ops/choose.h"

#include <limits>

#include "lockstep/autograd/ops/broadcast.h"
#include "lockstep/autograd/record.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/compare.h"

namespace lockstep {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// dy for the one that was chosen over `other`, half of it where they tie, 0 where `lost`.
Tensor share(const Tensor& dy, const Tensor& lost, const Tensor& tie) {
  return kernels::where(lost, 0.0, kernels::where(tie, kernels::mul(dy, 0.5), dy));
}

Variable extremum(const char* name, Tensor result, const Variable& a, const Variable& b,
                  bool largest) {
  return record(name, std::move(result), inputs(a, b), [&](const Tensor&) {
    return [fa = InputForm(a), fb = InputForm(b), a = SavedTensor(a.data()),
            b = SavedTensor(b.data()), largest](const Tensor& dy, Gradients& dx) {
      const Tensor tie = kernels::eq(a.get(), b.get());
      const Tensor a_below = kernels::lt(a.get(), b.get()), b_below = kernels::lt(b.get(), a.get());
      dx.set(0, [&] { return fa.undo(share(dy, largest ? a_below : b_below, tie)); });
      dx.set(1, [&] { return fb.undo(share(dy, largest ? b_below : a_below, tie)); });
    };
  });
}

}  // namespace

Variable maximum(const Variable& a, const Variable& b) {
  return extremum("maximum", kernels::maximum(a.data(), b.data()), a, b, true);
}

Variable minimum(const Variable& a, const Variable& b) {
  return extremum("minimum", kernels::minimum(a.data(), b.data()), a, b, false);
}

Variable clamp(const Variable& x, double low, double high) {
  return record("clamp", kernels::clamp(x.data(), low, high), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data()), low, high](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::clamp_backward(dy, x.get(), low, high); });
    };
  });
}

Variable clamp_min(const Variable& x, double low) { return clamp(x, low, kInf); }
Variable clamp_max(const Variable& x, double high) { return clamp(x, -kInf, high); }

Variable where(const Variable& condition, const Variable& a, const Variable& b) {
  Tensor y = kernels::where(condition.data(), a.data(), b.data());
  return record("where", std::move(y), inputs(a, b), [&](const Tensor&) {
    return [fa = InputForm(a), fb = InputForm(b), condition = SavedTensor(condition.data())](
               const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return fa.undo(kernels::where(condition.get(), dy, 0.0)); });
      dx.set(1, [&] { return fb.undo(kernels::where(condition.get(), 0.0, dy)); });
    };
  });
}

}  // namespace lockstep
