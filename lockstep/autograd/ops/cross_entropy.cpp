// Cross-entropy in the graph: keeps the logits and two numbers per row, not the probabilities.
#include "lockstep/autograd/ops/cross_entropy.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/cross_entropy.h"

namespace lockstep {

Variable cross_entropy(const Variable& logits, const Tensor& target,
                       const ClassLossOptions& options) {
  const kernels::CrossEntropy result =
      kernels::cross_entropy_forward(logits.data(), target, options);
  return record("cross_entropy", result.loss, inputs(logits), [&](const Tensor&) {
    return [x = SavedTensor(logits.data()), target = SavedTensor(target),
            row_stats = result.row_stats, options](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        return kernels::cross_entropy_backward(dy, x.get(), target.get(), row_stats, options);
      });
    };
  });
}

std::int64_t count_targets(const Tensor& target, std::int64_t ignore_index) {
  return kernels::count_targets(target, ignore_index);
}

}  // namespace lockstep
