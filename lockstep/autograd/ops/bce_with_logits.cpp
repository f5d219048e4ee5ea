// Binary cross-entropy with logits in the graph.
#include "lockstep/autograd/ops/bce_with_logits.h"

#include "lockstep/autograd/record.h"

namespace lockstep {

Variable binary_cross_entropy_with_logits(const Variable& x, const Variable& target,
                                          const BceOptions& options) {
  return record(
      "binary_cross_entropy_with_logits",
      kernels::bce_with_logits_forward(x.data(), target.data(), options), inputs(x, target),
      [&](const Tensor&) {
        return [x = SavedTensor(x.data()), t = SavedTensor(target.data()), options](
                   const Tensor& dy, Gradients& dx) {
          dx.set(0,
                 [&] { return kernels::bce_with_logits_backward(dy, x.get(), t.get(), options); });
          dx.set(1, [&] {
            return kernels::bce_with_logits_backward_target(dy, x.get(), t.get(), options);
          });
        };
      });
}

}  // namespace lockstep
