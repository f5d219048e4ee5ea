// Negative log-likelihood on the CPU: one read per row.
#include "lockstep/kernels/nll_loss.h"

#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/class_targets.h"
#include "lockstep/kernels/rows.h"

namespace lockstep::kernels {

NllLoss nll_loss_forward(const Tensor& log_probs, const Tensor& target,
                         const ClassLossOptions& options) {
  const ClassTargets t = check_targets(log_probs, target, options, "nll_loss");
  const Tensor x = to_rows(log_probs, t.class_axis);
  std::vector<double> losses(static_cast<std::size_t>(t.rows), 0.0);
  visit_floating(x.dtype(), "nll_loss", [&]<class T>() {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const std::int64_t label = t.label[static_cast<std::size_t>(r)];
      if (label == ClassTargets::kIgnored) continue;
      losses[static_cast<std::size_t>(r)] =
          -t.weight_of(label) * static_cast<double>(x.data<T>()[r * t.classes + label]);
    }
  });
  return {reduce_rows(losses, t, options.reduction, x.dtype()), t.total_weight};
}

Tensor nll_loss_backward(const Tensor& dloss, const Tensor& log_probs, const Tensor& target,
                         const ClassLossOptions& options) {
  const ClassTargets t = check_targets(log_probs, target, options, "nll_loss");
  const std::vector<double> g = row_gradients(dloss, t, options.reduction, "nll_loss backward");
  Shape row_shape = t.target_shape;
  row_shape.push_back(t.classes);
  Tensor dx = zeros(row_shape, {log_probs.dtype()});
  visit_floating(dx.dtype(), "nll_loss", [&]<class T>() {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const std::int64_t label = t.label[static_cast<std::size_t>(r)];
      if (label == ClassTargets::kIgnored) continue;
      dx.data<T>()[r * t.classes + label] = static_cast<T>(
          static_cast<Accumulator<T>>(-t.weight_of(label) * g[static_cast<std::size_t>(r)]));
    }
  });
  return from_rows(dx, t.class_axis, log_probs);
}

}  // namespace lockstep::kernels
