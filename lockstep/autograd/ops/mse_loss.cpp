// Squared error in the graph.
#include "lockstep/autograd/ops/mse_loss.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/mse_loss.h"

namespace lockstep {

Variable mse_loss(const Variable& x, const Variable& target, Reduction reduction) {
  return record("mse_loss", kernels::mse_loss_forward(x.data(), target.data(), reduction),
                inputs(x, target), [&](const Tensor&) {
                  return [x = SavedTensor(x.data()), t = SavedTensor(target.data()), reduction](
                             const Tensor& dy, Gradients& dx) {
                    const auto toward = [&](const SavedTensor& a, const SavedTensor& b) {
                      return kernels::mse_loss_backward(dy, a.get(), b.get(), reduction);
                    };
                    dx.set(0, [&] { return toward(x, t); });
                    dx.set(1, [&] { return toward(t, x); });
                  };
                });
}

}  // namespace lockstep
