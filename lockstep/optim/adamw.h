// Adam with decoupled weight decay (Loshchilov & Hutter 2019).
#pragma once

#include "lockstep/optim/adam.h"

namespace lockstep::optim {

class AdamWOptions final : public AdamOptions {
 public:
  explicit AdamWOptions(double lr = 1e-3) : AdamOptions(lr) { weight_decay_ = 1e-2; }

  using AdamOptions::amsgrad;
  using AdamOptions::betas;
  using AdamOptions::eps;
  using AdamOptions::lr;
  using AdamOptions::maximize;
  using AdamOptions::weight_decay;
  AdamWOptions& lr(double value) { return lr_ = value, *this; }
  AdamWOptions& betas(std::pair<double, double> value) {
    return beta1_ = value.first, beta2_ = value.second, *this;
  }
  AdamWOptions& eps(double value) { return eps_ = value, *this; }
  AdamWOptions& weight_decay(double value) { return weight_decay_ = value, *this; }
  AdamWOptions& amsgrad(bool value) { return amsgrad_ = value, *this; }
  AdamWOptions& maximize(bool value) { return maximize_ = value, *this; }

  bool decoupled() const override { return true; }
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<AdamWOptions>(*this);
  }
};

// As Adam, but p shrinks by lr * weight_decay before the step and the gradient stays as it is.
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<Variable> params, const AdamWOptions& options = AdamWOptions())
      : Adam(std::move(params), options) {}
  explicit AdamW(std::vector<OptimizerParamGroup> groups,
                 const AdamWOptions& defaults = AdamWOptions())
      : Adam(std::move(groups), defaults) {}
};

}  // namespace lockstep::optim
