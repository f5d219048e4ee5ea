#include "lockstep/autograd/ops/linear.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/linear.h"

namespace lockstep {
namespace {

Tensor value(const Variable& v) { return v.defined() ? v.data() : Tensor(); }

void backward(const Tensor& dy, const SavedTensor& x, const SavedTensor& w, Gradients& dx) {
  dx.set(0, [&] { return kernels::linear_backward_input(dy, w.get()); });
  dx.set(1, [&] { return kernels::linear_backward_weight(dy, x.get()); });
  dx.set(2, [&] { return kernels::linear_backward_bias(dy); });
}

}  // namespace

Variable linear(const Variable& x, const Variable& w, const Variable& b) {
  return record("linear", kernels::linear_forward(x.data(), w.data(), value(b)), inputs(x, w, b),
                [&](const Tensor&) {
                  return [x = SavedTensor(x.data()), w = SavedTensor(w.data())](
                             const Tensor& dy, Gradients& dx) { backward(dy, x, w, dx); };
                });
}

Variable linear_relu(const Variable& x, const Variable& w, const Variable& b) {
  return record("linear_relu", kernels::linear_forward(x.data(), w.data(), value(b), true),
                inputs(x, w, b), [&](const Tensor& y) {
                  return [x = SavedTensor(x.data()), w = SavedTensor(w.data()), y = SavedTensor(y)](
                             const Tensor& dy, Gradients& dx) {
                    backward(kernels::relu_backward(dy, y.get()), x, w, dx);
                  };
                });
}

}  // namespace lockstep
