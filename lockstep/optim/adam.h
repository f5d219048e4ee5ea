// Adam, with weight decay as L2 in the gradient, and optionally AMSGrad.
#pragma once

#include <utility>

#include "lockstep/optim/optimizer.h"

namespace lockstep::optim {

class AdamOptions : public OptimizerOptions {
 public:
  explicit AdamOptions(double lr = 1e-3) : OptimizerOptions(lr) {}

  double lr() const { return lr_; }
  std::pair<double, double> betas() const { return {beta1_, beta2_}; }
  double eps() const { return eps_; }
  double weight_decay() const { return weight_decay_; }
  bool amsgrad() const { return amsgrad_; }
  bool maximize() const { return maximize_; }
  AdamOptions& lr(double value) { return lr_ = value, *this; }
  AdamOptions& betas(std::pair<double, double> value) {
    return beta1_ = value.first, beta2_ = value.second, *this;
  }
  AdamOptions& eps(double value) { return eps_ = value, *this; }
  AdamOptions& weight_decay(double value) { return weight_decay_ = value, *this; }
  AdamOptions& amsgrad(bool value) { return amsgrad_ = value, *this; }
  AdamOptions& maximize(bool value) { return maximize_ = value, *this; }

  // Whether weight decay acts on the parameter instead of the gradient (AdamW).
  virtual bool decoupled() const { return false; }

  std::unique_ptr<OptimizerOptions> clone() const override;
  // Numbers finite and not negative, betas below 1.
  void check() const override;
  std::vector<OptionField> fields() override;
  double* cycled_momentum() override { return &beta1_; }

 protected:
  double beta1_ = 0.9;
  double beta2_ = 0.999;
  double eps_ = 1e-8;
  double weight_decay_ = 0;
  bool amsgrad_ = false;
  bool maximize_ = false;
};

// kernels/adam_step.h has the formula. State: "step", "exp_avg", "exp_avg_sq" and with amsgrad
// "max_exp_avg_sq"; a parameter's step counts only steps in which it had a gradient.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Variable> params, const AdamOptions& options = AdamOptions());
  explicit Adam(std::vector<OptimizerParamGroup> groups,
                const AdamOptions& defaults = AdamOptions());

  void step_scaled(double grad_scale) override;

 protected:
  std::vector<std::string> state_kinds() const override;
};

}  // namespace lockstep::optim
