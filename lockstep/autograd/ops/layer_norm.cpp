// Layer normalisation in the graph.
#include "lockstep/autograd/ops/layer_norm.h"

#include <algorithm>

#include "lockstep/autograd/record.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/layer_norm.h"

namespace lockstep {

Variable layer_norm(const Variable& x, const Shape& normalized_shape, const Variable& weight,
                    const Variable& bias, double eps) {
  const int axes = normalized_shape.rank();
  LOCKSTEP_CHECK(
      axes > 0 && axes <= x.dim() &&
          std::equal(normalized_shape.begin(), normalized_shape.end(), x.shape().end() - axes),
      "layer_norm: normalized_shape {} is not the end of the input's shape {}", normalized_shape,
      x.shape());
  const Tensor w = weight.defined() ? weight.data() : Tensor();
  const Tensor b = bias.defined() ? bias.data() : Tensor();
  const kernels::LayerNorm result = kernels::layer_norm_forward(x.data(), axes, w, b, eps);
  return record("layer_norm", result.y, inputs(x, weight, bias), [&](const Tensor&) {
    // Of the bias backward needs shape and dtype only.
    return [x = SavedTensor(x.data()), w = SavedTensor(w), b, mean = result.mean,
            rstd = result.rstd, axes](const Tensor& dy, Gradients& dx) {
      const auto gradients = kernels::layer_norm_gradients(
          dy, x.get(), axes, w.get(), b, mean, rstd, {dx.needs(0), dx.needs(1), dx.needs(2)});
      dx.set(0, [&] { return gradients.dx; });
      dx.set(1, [&] { return gradients.dweight; });
      dx.set(2, [&] { return gradients.dbias; });
    };
  });
}

}  // namespace lockstep
