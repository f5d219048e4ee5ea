// Stochastic gradient descent with momentum, dampening, Nesterov and weight decay.
#pragma once

#include "lockstep/optim/optimizer.h"

namespace lockstep::optim {

class SGDOptions final : public OptimizerOptions {
 public:
  explicit SGDOptions(double lr) : OptimizerOptions(lr) {}

  double lr() const { return lr_; }
  double momentum() const { return momentum_; }
  double dampening() const { return dampening_; }
  double weight_decay() const { return weight_decay_; }
  bool nesterov() const { return nesterov_; }
  bool maximize() const { return maximize_; }
  SGDOptions& lr(double value) { return lr_ = value, *this; }
  SGDOptions& momentum(double value) { return momentum_ = value, *this; }
  SGDOptions& dampening(double value) { return dampening_ = value, *this; }
  SGDOptions& weight_decay(double value) { return weight_decay_ = value, *this; }
  SGDOptions& nesterov(bool value) { return nesterov_ = value, *this; }
  SGDOptions& maximize(bool value) { return maximize_ = value, *this; }

  std::unique_ptr<OptimizerOptions> clone() const override;
  // Numbers finite and not negative; Nesterov needs a momentum and zero dampening.
  void check() const override;
  std::vector<OptionField> fields() override;
  double* cycled_momentum() override { return &momentum_; }

 private:
  double momentum_ = 0;
  double dampening_ = 0;
  double weight_decay_ = 0;
  bool nesterov_ = false;
  bool maximize_ = false;
};

// v = momentum * v + (1 - dampening) * g, p = p - lr * v; kernels/sgd_step.h has the whole formula.
// State: "momentum_buffer", only with a momentum.
class SGD final : public Optimizer {
 public:
  SGD(std::vector<Variable> params, const SGDOptions& options);
  SGD(std::vector<OptimizerParamGroup> groups, const SGDOptions& defaults);

  void step_scaled(double grad_scale) override;

 protected:
  std::vector<std::string> state_kinds() const override;
};

}  // namespace lockstep::optim
