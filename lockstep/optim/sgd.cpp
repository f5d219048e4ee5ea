#include "lockstep/optim/sgd.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/sgd_step.h"

namespace lockstep::optim {
namespace {

constexpr const char* kMomentumBuffer = "momentum_buffer";

}  // namespace

std::unique_ptr<OptimizerOptions> SGDOptions::clone() const {
  return std::make_unique<SGDOptions>(*this);
}

void SGDOptions::check() const {
  check_option("SGD", "lr", lr_);
  check_option("SGD", "momentum", momentum_);
  check_option("SGD", "weight_decay", weight_decay_);
  check_option("SGD", "dampening", dampening_);
  LOCKSTEP_CHECK(!nesterov_ || (momentum_ > 0 && dampening_ == 0),
                 "SGD: Nesterov needs a momentum and zero dampening but has momentum {} and "
                 "dampening {}",
                 momentum_, dampening_);
}

std::vector<OptionField> SGDOptions::fields() {
  return {{"lr", &lr_},
          {"momentum", &momentum_},
          {"dampening", &dampening_},
          {"weight_decay", &weight_decay_},
          {"nesterov", &nesterov_},
          {"maximize", &maximize_}};
}

SGD::SGD(std::vector<Variable> params, const SGDOptions& options)
    : SGD(
          [&] {
            std::vector<OptimizerParamGroup> groups;
            groups.emplace_back(std::move(params));
            return groups;
          }(),
          options) {}

SGD::SGD(std::vector<OptimizerParamGroup> groups, const SGDOptions& defaults)
    : Optimizer(std::move(groups), defaults.clone()) {}

std::vector<std::string> SGD::state_kinds() const { return {kMomentumBuffer}; }

void SGD::step_scaled(double grad_scale) {
  for (std::size_t g = 0; g < param_groups().size(); ++g) {
    OptimizerParamGroup& group = param_groups()[g];
    const auto& options = static_cast<const SGDOptions&>(group.options());
    GroupState& state = group_state(g);
    std::vector<kernels::SgdSegment> segments;
    std::vector<std::size_t> stepped;
    for (std::size_t i = 0; i < group.params().size(); ++i) {
      const Variable& p = group.params()[i];
      if (!p.grad().defined()) continue;
      kernels::SgdSegment segment{p.data(), laid_out_grad(p), {}, false};
      if (options.momentum() != 0) {
        FlatState& velocity = state.kinds[kMomentumBuffer];
        segment.momentum = velocity.view(group.params(), i);
        segment.first = !velocity.started(i);
      }
      stepped.push_back(i);
      segments.push_back(std::move(segment));
    }
    kernels::sgd_step(segments, {.lr = options.lr(),
                                 .momentum = options.momentum(),
                                 .dampening = options.dampening(),
                                 .weight_decay = options.weight_decay(),
                                 .nesterov = options.nesterov(),
                                 .maximize = options.maximize(),
                                 .grad_scale = grad_scale});
    if (options.momentum() == 0) continue;
    for (std::size_t i : stepped) state.kinds[kMomentumBuffer].set_started(i);
  }
}

}  // namespace lockstep::optim
