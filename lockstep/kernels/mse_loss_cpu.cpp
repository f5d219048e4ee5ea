// Squared error on the CPU.
#include "lockstep/kernels/mse_loss.h"

#include "lockstep/kernels/element_loss.h"

namespace lockstep::kernels {

Tensor mse_loss_forward(const Tensor& x_given, const Tensor& target, Reduction reduction) {
  check_pair(x_given, target, "mse_loss");
  const auto [x, t] = in_one_order<2>({x_given, target});
  return visit_floating(x.dtype(), "mse_loss", [&, &x = x, &t = t]<class T>() {
    using A = Accumulator<T>;
    const T *a = x.template data<T>(), *b = t.template data<T>();
    return reduce_elements<T>(x, reduction, [=](std::int64_t i) {
      const A d = static_cast<A>(a[i]) - static_cast<A>(b[i]);
      return d * d;
    });
  });
}

Tensor mse_loss_backward(const Tensor& dloss, const Tensor& x_given, const Tensor& target,
                         Reduction reduction) {
  check_pair(x_given, target, "mse_loss");
  check_loss_gradient(dloss, x_given, reduction, "mse_loss backward");
  const bool each = reduction == Reduction::kNone;
  const auto [x, t, g] = in_one_order<3>({x_given, target, each ? dloss : x_given});
  return visit_floating(x.dtype(), "mse_loss", [&, &x = x, &t = t, &g = g]<class T>() {
    using A = Accumulator<T>;
    const T *a = x.template data<T>(), *b = t.template data<T>();
    return scale_elements<T>(x, each ? g : dloss, reduction, [=](std::int64_t i) {
      return 2 * (static_cast<A>(a[i]) - static_cast<A>(b[i]));
    });
  });
}

}  // namespace lockstep::kernels
