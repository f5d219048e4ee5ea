// Parameters that share one set of optimizer options.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/autograd/variable.h"
#include "lockstep/optim/optimizer_options.h"

namespace lockstep::optim {

class OptimizerParamGroup {
 public:
  // Without options the optimizer's defaults are taken.
  explicit OptimizerParamGroup(std::vector<Variable> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Variable> params, const OptimizerOptions& options)
      : params_(std::move(params)), options_(options.clone()) {}

  OptimizerParamGroup(const OptimizerParamGroup& other)
      : params_(other.params_),
        options_(other.options_ ? other.options_->clone() : nullptr),
        initial_lr_(other.initial_lr_) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup& operator=(OptimizerParamGroup other) noexcept {
    params_.swap(other.params_);
    options_.swap(other.options_);
    initial_lr_.swap(other.initial_lr_);
    return *this;
  }

  const std::vector<Variable>& params() const { return params_; }
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() { return *options_; }
  const OptimizerOptions& options() const { return *options_; }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }

  double lr() const { return options_->get_lr(); }
  // The rate that schedules are relative to: lr when the first scheduler was made.
  const std::optional<double>& initial_lr() const { return initial_lr_; }
  void set_initial_lr(std::optional<double> lr) { initial_lr_ = lr; }

 private:
  friend class Optimizer;
  std::vector<Variable> params_;
  std::unique_ptr<OptimizerOptions> options_;
  std::optional<double> initial_lr_;
};

}  // namespace lockstep::optim
