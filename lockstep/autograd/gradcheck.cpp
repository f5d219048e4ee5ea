#include "lockstep/autograd/gradcheck.h"

#include <cmath>

#include "lockstep/autograd/grad_mode.h"
#include "lockstep/core/check.h"

namespace lockstep {
namespace {

// Fixed weights in [0.5, 1.5), different for each element, so that errors can't cancel.
Tensor weights_like(const Tensor& y) {
  Tensor w = empty(y.shape(), {.dtype = kF64});
  std::uint64_t s = 88172645463325252u;
  double* p = w.data<double>();
  const std::int64_t n = w.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    p[i] = 0.5 + static_cast<double>(s >> 11) * 0x1p-53;
  }
  return w;
}

double dot(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  double sum = 0;
  const std::int64_t n = x.numel();
  for (std::int64_t i = 0; i < n; ++i) sum += x.data<double>()[i] * y.data<double>()[i];
  return sum;
}

}  // namespace

std::string gradcheck(const std::function<Variable(const std::vector<Variable>&)>& f,
                      const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  std::vector<Variable> leaves;
  for (const Tensor& x : inputs) {
    LOCKSTEP_CHECK(x.dtype() == kF64, "gradcheck: expected f64 inputs but got {}", x.dtype());
    leaves.emplace_back(x.clone(), true);
  }
  const Variable y = f(leaves);
  LOCKSTEP_CHECK(y.dtype() == kF64, "gradcheck: expected an f64 result but got {}", y.dtype());
  const Tensor w = weights_like(y.data());
  y.backward(w);
  NoGradGuard no_grad;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const Tensor x = leaves[k].data();
    const Tensor dx = leaves[k].grad();
    if (!dx.defined()) return fmt::format("input {} got no gradient", k);
    // One-element views in logical order, so that any layout will do.
    std::vector<std::int64_t> at(x.dim(), 0);
    const std::int64_t n = x.numel();
    for (std::int64_t i = 0; i < n; ++i) {
      Tensor element = x, gradient = dx;
      for (std::int64_t axis : at) {
        element = element.select(0, axis);
        gradient = gradient.select(0, axis);
      }
      double& value = *element.data<double>();
      const double before = value;
      value = before + options.eps;
      const double above = dot(f(leaves).data(), w);
      value = before - options.eps;
      const double below = dot(f(leaves).data(), w);
      value = before;
      const double expected = (above - below) / (2 * options.eps);
      const double actual = *gradient.data<double>();
      if (!(std::abs(actual - expected) <= options.atol + options.rtol * std::abs(expected)))
        return fmt::format("input {}, element {}: backward gives {}, finite differences {}", k, i,
                           actual, expected);
      for (int d = x.dim() - 1; d >= 0 && ++at[d] == x.shape()[d]; --d) at[d] = 0;
    }
  }
  return {};
}

}  // namespace lockstep
