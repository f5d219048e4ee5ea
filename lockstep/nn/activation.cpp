#include "lockstep/nn/activation.h"

#include "lockstep/autograd/ops/activation.h"
#include "lockstep/core/check.h"

namespace lockstep::nn {

Variable ReLUImpl::forward(const Variable& x) { return relu(x); }
Variable SigmoidImpl::forward(const Variable& x) { return sigmoid(x); }
Variable TanhImpl::forward(const Variable& x) { return lockstep::tanh(x); }
Variable SiLUImpl::forward(const Variable& x) { return silu(x); }

GELUImpl::GELUImpl(const GELUOptions& given) : options(given) {
  LOCKSTEP_CHECK(options.approximate() == "none" || options.approximate() == "tanh",
                 "GELU: approximate must be 'none' or 'tanh', got '{}'", options.approximate());
}

Variable GELUImpl::forward(const Variable& x) {
  return gelu(
      x, options.approximate() == "tanh" ? GeluApproximation::kTanh : GeluApproximation::kNone);
}

}  // namespace lockstep::nn
