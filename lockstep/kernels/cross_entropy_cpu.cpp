// Cross-entropy on the CPU: the logits are read twice forward (maximum, sum) and once backward.
#include "lockstep/kernels/cross_entropy.h"

#include <cmath>

#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/class_targets.h"
#include "lockstep/kernels/cross_entropy_cuda.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/rows.h"
#include "lockstep/kernels/softmax_row.h"

namespace lockstep::kernels {
namespace {

// sum_c w_c (log_sum - (x_c - max)): -sum_c w_c log p_c
template <class T>
double smooth_loss(const T* x, const ClassTargets& t, double max, double log_sum) {
  double sum = 0;
  for (std::int64_t c = 0; c < t.classes; ++c)
    sum += t.weight_of(c) * (log_sum - (static_cast<double>(x[c]) - max));
  return sum;
}

double sum_of_weights(const ClassTargets& t) {
  if (t.weight.empty()) return static_cast<double>(t.classes);
  double sum = 0;
  for (double w : t.weight) sum += w;
  return sum;
}

template <class T>
LOCKSTEP_SIMD_FN void grad_row(const T* x, T* dx, std::int64_t n, Accumulator<T> max,
                               Accumulator<T> scale, Accumulator<T> shift) {
  for_each_vector<T>(n, [&](std::int64_t i, std::int64_t k) LOCKSTEP_SIMD {
    store_at(dx, i, k, exp_lanes(load_at(x, i, k) - max) * scale - shift);
  });
}

void check_smoothing(double smoothing) {
  LOCKSTEP_CHECK(smoothing >= 0 && smoothing <= 1,
                 "cross_entropy: label_smoothing is {}, must be in [0, 1]", smoothing);
}

}  // namespace

CrossEntropy cross_entropy_forward(const Tensor& logits, const Tensor& target,
                                   const ClassLossOptions& options) {
  check_smoothing(options.label_smoothing);
  if constexpr (kHasCuda)
    if (common_device("cross_entropy", {&logits, &target, &options.weight}).is_cuda())
      return cuda::cross_entropy_forward(
          to_device_targets(logits, target, options, "cross_entropy"), options);
  const ClassTargets t = check_targets(logits, target, options, "cross_entropy");
  const Tensor x = to_rows(logits, t.class_axis);
  const double smoothing = options.label_smoothing;
  std::vector<double> losses(static_cast<std::size_t>(t.rows), 0.0);
  CrossEntropy result;
  result.total_weight = t.total_weight;
  visit_floating(x.dtype(), "cross_entropy", [&]<class T>() {
    using A = Accumulator<T>;
    result.row_stats = empty({t.rows, 2}, {kDTypeOf<A>});
    A* stats = result.row_stats.template data<A>();
    const T* logit = x.data<T>();
    parallel_for(t.rows, row_grain(t.classes), [&](std::int64_t begin, std::int64_t end) {
      run_simd([&]() LOCKSTEP_SIMD {
        for (std::int64_t r = begin; r < end; ++r) {
          stats[2 * r] = row_max(logit + r * t.classes, t.classes);
          stats[2 * r + 1] = row_exp_sum(logit + r * t.classes, t.classes, stats[2 * r]);
        }
      });
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t label = t.label[static_cast<std::size_t>(r)];
        if (label == ClassTargets::kIgnored) continue;
        const T* row = logit + r * t.classes;
        const double max = stats[2 * r], log_sum = std::log(static_cast<double>(stats[2 * r + 1]));
        double loss = (1 - smoothing) * t.weight_of(label) *
                      (log_sum - (static_cast<double>(row[label]) - max));
        if (smoothing > 0)
          loss += smoothing / static_cast<double>(t.classes) * smooth_loss(row, t, max, log_sum);
        losses[static_cast<std::size_t>(r)] = loss;
      }
    });
  });
  result.loss = reduce_rows(losses, t, options.reduction, x.dtype());
  return result;
}

Tensor cross_entropy_backward(const Tensor& dloss, const Tensor& logits, const Tensor& target,
                              const Tensor& row_stats, const ClassLossOptions& options) {
  if constexpr (kHasCuda)
    if (common_device("cross_entropy backward", {&dloss, &logits, &target, &row_stats}).is_cuda()) {
      const cuda::DeviceTargets t = to_device_targets(logits, target, options, "cross_entropy");
      check_loss_gradient(dloss, target.shape(), options.reduction, "cross_entropy backward");
      const int axis = logits.dim() == 1 ? 0 : 1;
      Shape rows = target.shape();
      rows.push_back(logits.shape()[axis]);
      return from_rows(
          cuda::cross_entropy_backward(dloss.contiguous(), t, row_stats, options).view(rows), axis,
          logits);
    }
  const ClassTargets t = check_targets(logits, target, options, "cross_entropy");
  const std::vector<double> g =
      row_gradients(dloss, t, options.reduction, "cross_entropy backward");
  const Tensor x = to_rows(logits, t.class_axis);
  Tensor dx = empty(x.shape(), {x.dtype()});
  const double keep = 1 - options.label_smoothing;
  const double each = t.classes == 0 ? 0 : options.label_smoothing / static_cast<double>(t.classes);
  const double weights = sum_of_weights(t);
  visit_floating(x.dtype(), "cross_entropy", [&]<class T>() {
    using A = Accumulator<T>;
    const A* stats = row_stats.data<A>();
    parallel_for(t.rows, row_grain(t.classes), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T* from = x.data<T>() + r * t.classes;
        T* to = dx.data<T>() + r * t.classes;
        const std::int64_t label = t.label[static_cast<std::size_t>(r)];
        const double scale = g[static_cast<std::size_t>(r)];
        if (label == ClassTargets::kIgnored || scale == 0) {
          std::fill(to, to + t.classes, T(0));
          continue;
        }
        const double own = keep * t.weight_of(label);
        const double per_p = scale * (own + each * weights) / static_cast<double>(stats[2 * r + 1]);
        const double shift = t.weight.empty() ? scale * each : 0;
        const A max = stats[2 * r];
        run_simd([&]() LOCKSTEP_SIMD {
          grad_row(from, to, t.classes, max, static_cast<A>(per_p), static_cast<A>(shift));
        });
        // In full precision where something more than the common term is taken off.
        const auto at = [&](std::int64_t c) {
          return per_p * std::exp(static_cast<double>(from[c]) - static_cast<double>(max)) -
                 scale * (each * t.weight_of(c) + (c == label ? own : 0));
        };
        if (!t.weight.empty() && each > 0)
          for (std::int64_t c = 0; c < t.classes; ++c)
            to[c] = static_cast<T>(static_cast<A>(at(c)));
        to[label] = static_cast<T>(static_cast<A>(at(label)));
      }
    });
  });
  return from_rows(dx, t.class_axis, logits);
}

}  // namespace lockstep::kernels
