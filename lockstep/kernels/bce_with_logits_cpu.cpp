// Binary cross-entropy with logits on the CPU.
#include "lockstep/kernels/bce_with_logits.h"

#include <cmath>

#include "lockstep/kernels/element_loss.h"

namespace lockstep::kernels {
namespace {

template <class A>
A softplus_of_minus(A x) {
  return std::log1p(std::exp(-std::abs(x))) + std::max(-x, A(0));
}
template <class A>
A sigmoid_of_minus(A x) {
  const A e = std::exp(-std::abs(x));
  return x >= 0 ? e / (1 + e) : 1 / (1 + e);
}

// All operands in one order; w and q as null where they are not given.
template <class T>
struct Operands {
  using A = Accumulator<T>;
  const T *x, *t, *w, *q;

  A logit(std::int64_t i) const { return static_cast<A>(x[i]); }
  A target(std::int64_t i) const { return static_cast<A>(t[i]); }
  A weight(std::int64_t i) const { return w ? static_cast<A>(w[i]) : A(1); }
  A positive(std::int64_t i) const { return q ? static_cast<A>(q[i]) : A(1); }
};

Tensor broadcast_weight(const Tensor& weight, const Tensor& x, const char* name) {
  if (!weight.defined()) return x;
  LOCKSTEP_CHECK(weight.dtype() == x.dtype(), "bce_with_logits: input is {} but {} is {}",
                 x.dtype(), name, weight.dtype());
  LOCKSTEP_CHECK(broadcast_shapes(weight.shape(), x.shape(), "bce_with_logits") == x.shape(),
                 "bce_with_logits: {} of shape {} does not broadcast to the input's shape {}", name,
                 weight.shape(), x.shape());
  return weight.expand(x.shape());
}

// Calls f<T>(x, dloss, operands) with all tensors in x's order.
template <class F>
Tensor with_operands(const Tensor& x_given, const Tensor& target, const Tensor& dloss,
                     const BceOptions& options, F&& f) {
  check_pair(x_given, target, "bce_with_logits");
  const auto ordered =
      in_one_order<5>({x_given, target, broadcast_weight(options.weight, x_given, "weight"),
                       broadcast_weight(options.pos_weight, x_given, "pos_weight"),
                       dloss.shape() == x_given.shape() ? dloss : x_given});
  const Tensor& g = options.reduction == Reduction::kNone ? ordered[4] : dloss;
  return visit_floating(x_given.dtype(), "bce_with_logits", [&]<class T>() {
    const auto data = [&](int i) {
      return ordered[static_cast<std::size_t>(i)].template data<T>();
    };
    const Operands<T> operands{data(0), data(1), options.weight.defined() ? data(2) : nullptr,
                               options.pos_weight.defined() ? data(3) : nullptr};
    return f.template operator()<T>(ordered[0], g, operands);
  });
}

}  // namespace

Tensor bce_with_logits_forward(const Tensor& x, const Tensor& target, const BceOptions& options) {
  return with_operands(
      x, target, x, options, [&]<class T>(const Tensor& like, const Tensor&, const Operands<T>& o) {
        return reduce_elements<T>(like, options.reduction, [o](std::int64_t i) {
          const auto v = o.logit(i), t = o.target(i);
          return o.weight(i) * ((1 - t) * v + (1 + (o.positive(i) - 1) * t) * softplus_of_minus(v));
        });
      });
}

Tensor bce_with_logits_backward(const Tensor& dloss, const Tensor& x, const Tensor& target,
                                const BceOptions& options) {
  check_loss_gradient(dloss, x, options.reduction, "bce_with_logits backward");
  return with_operands(x, target, dloss, options,
                       [&]<class T>(const Tensor& like, const Tensor& g, const Operands<T>& o) {
                         return scale_elements<T>(like, g, options.reduction, [o](std::int64_t i) {
                           const auto v = o.logit(i), t = o.target(i);
                           return o.weight(i) *
                                  ((1 - t) - (1 + (o.positive(i) - 1) * t) * sigmoid_of_minus(v));
                         });
                       });
}

Tensor bce_with_logits_backward_target(const Tensor& dloss, const Tensor& x, const Tensor& target,
                                       const BceOptions& options) {
  check_loss_gradient(dloss, x, options.reduction, "bce_with_logits backward");
  return with_operands(x, target, dloss, options,
                       [&]<class T>(const Tensor& like, const Tensor& g, const Operands<T>& o) {
                         return scale_elements<T>(like, g, options.reduction, [o](std::int64_t i) {
                           const auto v = o.logit(i);
                           return o.weight(i) * ((o.positive(i) - 1) * softplus_of_minus(v) - v);
                         });
                       });
}

}  // namespace lockstep::kernels
