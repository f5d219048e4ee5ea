// Checks and reductions of the losses over class indices.
#include "lockstep/kernels/class_targets.h"

#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/cross_entropy.h"
#include "lockstep/kernels/rows.h"

namespace lockstep::kernels {
namespace {

template <class F>
decltype(auto) visit_label(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case kI64:
      return f.template operator()<std::int64_t>();
    case kI32:
      return f.template operator()<std::int32_t>();
    case kU8:
      return f.template operator()<std::uint8_t>();
    default:
      throw Error(
          fmt::format("{}: targets must be class indices (i64, i32 or u8) but are {}", op, dtype));
  }
}

void check_weights(const Tensor& weight, std::int64_t classes, const char* op) {
  LOCKSTEP_CHECK(weight.shape() == Shape{classes} && is_floating(weight.dtype()),
                 "{}: class weights have shape {} and dtype {} but there are {} classes", op,
                 weight.shape(), weight.dtype(), classes);
}

std::vector<double> class_weights(const Tensor& weight, std::int64_t classes, const char* op) {
  std::vector<double> values;
  if (!weight.defined()) return values;
  check_weights(weight, classes, op);
  const Tensor w = weight.contiguous();
  visit_floating(w.dtype(), op, [&]<class T>() {
    for (std::int64_t c = 0; c < classes; ++c)
      values.push_back(static_cast<double>(w.data<T>()[c]));
  });
  return values;
}

// The axis of the classes; target has all others.
int checked_class_axis(const Tensor& scores, const Tensor& target, const char* op) {
  LOCKSTEP_CHECK(scores.dim() >= 1, "{}: scores need a class axis but are a scalar", op);
  const int axis = scores.dim() == 1 ? 0 : 1;
  const Shape wanted = scores.shape().erased(axis);
  LOCKSTEP_CHECK(target.shape() == wanted,
                 "{}: scores of shape {} need targets of shape {} but got {}", op, scores.shape(),
                 wanted, target.shape());
  return axis;
}

}  // namespace

cuda::DeviceTargets to_device_targets(const Tensor& scores, const Tensor& target,
                                      const ClassLossOptions& options, const char* op) {
  const int axis = checked_class_axis(scores, target, op);
  const std::int64_t classes = scores.shape()[axis];
  visit_label(target.dtype(), op, []<class>() {});
  LOCKSTEP_CHECK(is_floating(scores.dtype()), "{}: expected floating scores but got {}", op,
                 scores.dtype());
  cuda::DeviceTargets t;
  t.scores = to_rows(scores, axis).view({target.numel(), classes});
  t.labels = target.contiguous();
  if (options.weight.defined()) {
    check_weights(options.weight, classes, op);
    t.weight = cast(options.weight, scores.dtype() == kF64 ? kF64 : kF32).contiguous();
  }
  t.target_shape = target.shape();
  return t;
}

void check_loss_gradient(const Tensor& dloss, const Shape& target, Reduction reduction,
                         const char* op) {
  const Shape wanted = reduction == Reduction::kNone ? target : Shape{};
  LOCKSTEP_CHECK(dloss.shape() == wanted, "{}: gradient of the loss has shape {}, expected {}", op,
                 dloss.shape(), wanted);
}

ClassTargets check_targets(const Tensor& scores, const Tensor& target,
                           const ClassLossOptions& options, const char* op) {
  ClassTargets t;
  t.class_axis = checked_class_axis(scores, target, op);
  t.classes = scores.shape()[t.class_axis];
  t.target_shape = target.shape();
  t.rows = target.numel();
  t.weight = class_weights(options.weight, t.classes, op);
  t.label.resize(static_cast<std::size_t>(t.rows));
  const Tensor labels = target.contiguous();
  visit_label(target.dtype(), op, [&]<class T>() {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const auto label = static_cast<std::int64_t>(labels.data<T>()[r]);
      std::int64_t& out = t.label[static_cast<std::size_t>(r)];
      if (label == options.ignore_index) {
        out = ClassTargets::kIgnored;
        continue;
      }
      LOCKSTEP_CHECK(label >= 0 && label < t.classes,
                     "{}: target {} in row {} is not one of the {} classes (0 to {}) and not "
                     "ignore_index {}",
                     op, label, r, t.classes, t.classes - 1, options.ignore_index);
      out = label;
      t.total_weight += t.weight_of(label);
    }
  });
  return t;
}

Tensor reduce_rows(const std::vector<double>& losses, const ClassTargets& targets,
                   Reduction reduction, DType dtype) {
  if (reduction == Reduction::kNone) {
    Tensor out = empty(targets.target_shape, {dtype});
    visit_floating(dtype, "loss", [&]<class T>() {
      for (std::int64_t r = 0; r < targets.rows; ++r)
        out.data<T>()[r] =
            static_cast<T>(static_cast<Accumulator<T>>(losses[static_cast<std::size_t>(r)]));
    });
    return out;
  }
  double sum = 0;
  for (double loss : losses) sum += loss;
  // Weights may add up to 0 only where nothing counts or the caller weighs all rows away.
  if (reduction == Reduction::kMean)
    sum = targets.total_weight == 0 ? 0 : sum / targets.total_weight;
  return full({}, sum, {dtype});
}

std::vector<double> row_gradients(const Tensor& dloss, const ClassTargets& targets,
                                  Reduction reduction, const char* op) {
  std::vector<double> g(static_cast<std::size_t>(targets.rows), 0.0);
  check_loss_gradient(dloss, targets.target_shape, reduction, op);
  const Tensor d = dloss.contiguous();
  visit_floating(d.dtype(), op, [&]<class T>() {
    for (std::int64_t r = 0; r < targets.rows; ++r) {
      if (targets.label[static_cast<std::size_t>(r)] == ClassTargets::kIgnored) continue;
      double scale = static_cast<double>(d.data<T>()[reduction == Reduction::kNone ? r : 0]);
      if (reduction == Reduction::kMean)
        scale = targets.total_weight == 0 ? 0 : scale / targets.total_weight;
      g[static_cast<std::size_t>(r)] = scale;
    }
  });
  return g;
}

std::int64_t count_targets(const Tensor& target, std::int64_t ignore_index) {
  const Tensor labels = target.contiguous();
  std::int64_t count = 0;
  visit_label(target.dtype(), "count_targets", [&]<class T>() {
    for (std::int64_t r = 0; r < labels.numel(); ++r)
      count += static_cast<std::int64_t>(labels.data<T>()[r]) != ignore_index;
  });
  return count;
}

}  // namespace lockstep::kernels
