// Softmax and log-softmax in the graph.
#include "lockstep/autograd/ops/softmax.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/softmax.h"

namespace lockstep {

Variable softmax(const Variable& x, std::int64_t axis) {
  const int a = normalize_axis(axis, x.dim(), "softmax");
  return record("softmax", kernels::softmax_forward(x.data(), a), inputs(x), [&](const Tensor& y) {
    return [y = SavedTensor(y), a](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::softmax_backward(dy, y.get(), a); });
    };
  });
}

Variable log_softmax(const Variable& x, std::int64_t axis) {
  const int a = normalize_axis(axis, x.dim(), "log_softmax");
  return record("log_softmax", kernels::log_softmax_forward(x.data(), a), inputs(x),
                [&](const Tensor& y) {
                  return [y = SavedTensor(y), a](const Tensor& dy, Gradients& dx) {
                    dx.set(0, [&] { return kernels::log_softmax_backward(dy, y.get(), a); });
                  };
                });
}

}  // namespace lockstep
