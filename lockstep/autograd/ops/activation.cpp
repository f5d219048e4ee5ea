#include "lockstep/autograd/ops/activation.h"

#include "lockstep/autograd/record.h"

namespace lockstep {

Variable relu(const Variable& x) {
  return record("relu", kernels::relu(x.data()), inputs(x), [&](const Tensor& y) {
    return [y = SavedTensor(y)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::relu_backward(dy, y.get()); });
    };
  });
}

Variable sigmoid(const Variable& x) {
  return record("sigmoid", kernels::sigmoid(x.data()), inputs(x), [&](const Tensor& y) {
    return [y = SavedTensor(y)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::sigmoid_backward(dy, y.get()); });
    };
  });
}

Variable tanh(const Variable& x) {
  return record("tanh", kernels::tanh(x.data()), inputs(x), [&](const Tensor& y) {
    return [y = SavedTensor(y)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::tanh_backward(dy, y.get()); });
    };
  });
}

Variable silu(const Variable& x) {
  return record("silu", kernels::silu(x.data()), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::silu_backward(dy, x.get()); });
    };
  });
}

Variable gelu(const Variable& x, GeluApproximation approximation) {
  return record("gelu", kernels::gelu(x.data(), approximation), inputs(x), [&](const Tensor&) {
    return [x = SavedTensor(x.data()), approximation](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::gelu_backward(dy, x.get(), approximation); });
    };
  });
}

}  // namespace lockstep
