// relu, sigmoid, tanh, silu, gelu and their backward. Formulas stand beside the functors in
// pointwise_math.h. Floating dtypes (relu: any); half types compute in f32 and round once. Backward
// functions take dy of the output's shape and what their comment names, and return dx = …
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

Tensor relu(const Tensor& x);  // max(x, 0); NaN stays
Tensor relu_backward(const Tensor& dy, const Tensor& y);
Tensor sigmoid(const Tensor& x);  // 1 / (1 + exp(-x))
Tensor sigmoid_backward(const Tensor& dy, const Tensor& y);
Tensor tanh(const Tensor& x);
Tensor tanh_backward(const Tensor& dy, const Tensor& y);
Tensor silu(const Tensor& x);  // x * sigmoid(x)
Tensor silu_backward(const Tensor& dy, const Tensor& x);

enum class GeluApproximation { kNone, kTanh };
// x * Phi(x), or its tanh approximation (Hendrycks and Gimpel, 2016).
Tensor gelu(const Tensor& x, GeluApproximation approximation);
Tensor gelu_backward(const Tensor& dy, const Tensor& x, GeluApproximation approximation);

}  // namespace lockstep::kernels
