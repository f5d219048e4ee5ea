#include "lockstep/kernels/activation.h"

#include "lockstep/kernels/elementwise.h"

namespace lockstep::kernels {

using enum ResultKind;

Tensor relu(const Tensor& x) { return unary_op<kPromoted>("relu", pointwise::Relu{}, x); }
Tensor relu_backward(const Tensor& dy, const Tensor& y) {
  return backward_op("relu", pointwise::ReluBackward{}, dy, y);
}
Tensor sigmoid(const Tensor& x) { return unary_op<kFloating>("sigmoid", pointwise::Sigmoid{}, x); }
Tensor sigmoid_backward(const Tensor& dy, const Tensor& y) {
  return backward_op("sigmoid", pointwise::SigmoidBackward{}, dy, y);
}
Tensor tanh(const Tensor& x) { return unary_op<kFloating>("tanh", pointwise::Tanh{}, x); }
Tensor tanh_backward(const Tensor& dy, const Tensor& y) {
  return backward_op("tanh", pointwise::TanhBackward{}, dy, y);
}
Tensor silu(const Tensor& x) { return unary_op<kFloating>("silu", pointwise::Silu{}, x); }
Tensor silu_backward(const Tensor& dy, const Tensor& x) {
  return backward_op("silu", pointwise::SiluBackward{}, dy, x);
}
Tensor gelu(const Tensor& x, GeluApproximation approximation) {
  return approximation == GeluApproximation::kTanh
             ? unary_op<kFloating>("gelu", pointwise::GeluTanh{}, x)
             : unary_op<kFloating>("gelu", pointwise::Gelu{}, x);
}
Tensor gelu_backward(const Tensor& dy, const Tensor& x, GeluApproximation approximation) {
  return approximation == GeluApproximation::kTanh
             ? backward_op("gelu", pointwise::GeluTanhBackward{}, dy, x)
             : backward_op("gelu", pointwise::GeluBackward{}, dy, x);
}

}  // namespace lockstep::kernels
