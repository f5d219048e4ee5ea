// Layer normalisation over the trailing axes.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// x (…, D1, …, Dk) as rows of D = D1·…·Dk elements: the last `axes` axes of x. Any layout; f16 and
// bf16 are computed in f32. weight and bias: undefined, or shape (D1, …, Dk), any floating dtype.
//   m = sum_i x_i / D,  v = sum_i (x_i - m)^2 / D,  r = 1 / sqrt(v + eps)
//   y_i = (x_i - m) r weight_i + bias_i
// y is a new contiguous tensor (=) of x's dtype; mean and rstd, one per row, are f32 (f64 for f64).
// Rows of no elements give an empty result.
struct LayerNorm {
  Tensor y, mean, rstd;
};
LayerNorm layer_norm_forward(const Tensor& x, int axes, const Tensor& weight, const Tensor& bias,
                             double eps);

// With h_i = (x_i - m) r and a_i = dy_i weight_i:  dx_i = r (a_i - mean(a) - h_i mean(a h))
Tensor layer_norm_backward(const Tensor& dy, const Tensor& x, int axes, const Tensor& weight,
                           const Tensor& mean, const Tensor& rstd);
// dweight_i = sum over rows of dy_i h_i, in weight's dtype and shape (=). Rows are added in blocks,
// blocks in order, the same ones whatever the number of threads.
Tensor layer_norm_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                  const Tensor& mean, const Tensor& rstd);
// dbias_i = sum over rows of dy_i, in bias' dtype and shape (=); order as above.
Tensor layer_norm_backward_bias(const Tensor& dy, const Tensor& bias);

// The three at once, each where it is wanted; CUDA devices read dy and x once for all of them.
struct LayerNormGradients {
  Tensor dx, dweight, dbias;
};
struct LayerNormWanted {
  bool dx = true, dweight = true, dbias = true;
};
LayerNormGradients layer_norm_gradients(const Tensor& dy, const Tensor& x, int axes,
                                        const Tensor& weight, const Tensor& bias,
                                        const Tensor& mean, const Tensor& rstd,
                                        const LayerNormWanted& wanted);

}  // namespace lockstep::kernels
