// Negative log-likelihood in the graph.
#include "lockstep/autograd/ops/nll_loss.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/nll_loss.h"

namespace lockstep {

Variable nll_loss(const Variable& log_probs, const Tensor& target,
                  const ClassLossOptions& options) {
  return record(
      "nll_loss", kernels::nll_loss_forward(log_probs.data(), target, options).loss,
      inputs(log_probs), [&](const Tensor&) {
        // Backward reads shape and layout of the log-probabilities only: no version check on them.
        return [x = log_probs.data(), target = SavedTensor(target), options](const Tensor& dy,
                                                                             Gradients& dx) {
          dx.set(0, [&] { return kernels::nll_loss_backward(dy, x, target.get(), options); });
        };
      });
}

}  // namespace lockstep
