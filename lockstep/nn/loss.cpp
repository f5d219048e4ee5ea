#include "lockstep/nn/loss.h"

#include "lockstep/autograd/ops/cross_entropy.h"
#include "lockstep/autograd/ops/mse_loss.h"
#include "lockstep/autograd/ops/nll_loss.h"

namespace lockstep::nn {

// Class weights are buffers, so that state dicts carry them (as PyTorch's do).
CrossEntropyLossImpl::CrossEntropyLossImpl(const CrossEntropyLossOptions& given) : options(given) {
  if (const Tensor& w = options.values().weight; w.defined()) register_buffer("weight", w);
}

Variable CrossEntropyLossImpl::forward(const Variable& logits, const Variable& target) {
  return cross_entropy(logits, target.data(), options.values());
}

NLLLossImpl::NLLLossImpl(const NLLLossOptions& given) : options(given) {
  if (const Tensor& w = options.values().weight; w.defined()) register_buffer("weight", w);
}

Variable NLLLossImpl::forward(const Variable& log_probs, const Variable& target) {
  return nll_loss(log_probs, target.data(), options.values());
}

Variable MSELossImpl::forward(const Variable& x, const Variable& target) {
  return mse_loss(x, target, options.reduction());
}

BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& given)
    : options(given) {
  const BceOptions& values = options.values();
  if (values.weight.defined()) register_buffer("weight", values.weight);
  if (values.pos_weight.defined()) register_buffer("pos_weight", values.pos_weight);
}

Variable BCEWithLogitsLossImpl::forward(const Variable& x, const Variable& target) {
  return binary_cross_entropy_with_logits(x, target, options.values());
}

}  // namespace lockstep::nn
