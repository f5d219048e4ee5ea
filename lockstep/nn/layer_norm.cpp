#include "lockstep/nn/layer_norm.h"

#include "lockstep/autograd/ops/layer_norm.h"
#include "lockstep/nn/init.h"

namespace lockstep::nn {

LayerNormImpl::LayerNormImpl(const LayerNormOptions& given) : options(given) {
  if (!options.elementwise_affine()) return;
  weight = register_parameter("weight", empty(options.normalized_shape()));
  if (options.bias()) bias = register_parameter("bias", empty(options.normalized_shape()));
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}

Variable LayerNormImpl::forward(const Variable& x) {
  return layer_norm(x, options.normalized_shape(), weight, bias, options.eps());
}

}  // namespace lockstep::nn
