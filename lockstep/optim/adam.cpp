#include "lockstep/optim/adam.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/adam_step.h"

namespace lockstep::optim {
namespace {

constexpr const char* kExpAvg = "exp_avg";
constexpr const char* kExpAvgSq = "exp_avg_sq";
constexpr const char* kMaxExpAvgSq = "max_exp_avg_sq";

}  // namespace

std::unique_ptr<OptimizerOptions> AdamOptions::clone() const {
  return std::make_unique<AdamOptions>(*this);
}

void AdamOptions::check() const {
  const char* name = decoupled() ? "AdamW" : "Adam";
  check_option(name, "lr", lr_);
  check_option(name, "eps", eps_);
  check_option(name, "weight_decay", weight_decay_);
  for (double beta : {beta1_, beta2_})
    LOCKSTEP_CHECK(beta >= 0 && beta < 1, "{}: betas must be in [0, 1) but are {} and {}", name,
                   beta1_, beta2_);
}

std::vector<OptionField> AdamOptions::fields() {
  return {{"lr", &lr_},
          {"beta1", &beta1_},
          {"beta2", &beta2_},
          {"eps", &eps_},
          {"weight_decay", &weight_decay_},
          {"amsgrad", &amsgrad_},
          {"maximize", &maximize_}};
}

Adam::Adam(std::vector<Variable> params, const AdamOptions& options)
    : Adam(
          [&] {
            std::vector<OptimizerParamGroup> groups;
            groups.emplace_back(std::move(params));
            return groups;
          }(),
          options) {}

Adam::Adam(std::vector<OptimizerParamGroup> groups, const AdamOptions& defaults)
    : Optimizer(std::move(groups), defaults.clone()) {}

std::vector<std::string> Adam::state_kinds() const { return {kExpAvg, kExpAvgSq, kMaxExpAvgSq}; }

void Adam::step_scaled(double grad_scale) {
  for (std::size_t g = 0; g < param_groups().size(); ++g) {
    OptimizerParamGroup& group = param_groups()[g];
    const auto& options = static_cast<const AdamOptions&>(group.options());
    GroupState& state = group_state(g);
    std::vector<const char*> kinds{kExpAvg, kExpAvgSq};
    if (options.amsgrad()) kinds.push_back(kMaxExpAvgSq);
    const auto state_of = [&](const char* kind, std::size_t i) {
      return state.kinds[kind].view(group.params(), i);
    };
    std::vector<kernels::AdamSegment> segments;
    std::vector<std::size_t> stepped;
    for (std::size_t i = 0; i < group.params().size(); ++i) {
      const Variable& p = group.params()[i];
      if (!p.grad().defined()) continue;
      segments.push_back({p.data(), laid_out_grad(p), state_of(kExpAvg, i), state_of(kExpAvgSq, i),
                          options.amsgrad() ? state_of(kMaxExpAvgSq, i) : Tensor(),
                          state.steps[i] + 1});
      stepped.push_back(i);
    }
    kernels::adam_step(segments, {.lr = options.lr(),
                                  .beta1 = options.betas().first,
                                  .beta2 = options.betas().second,
                                  .eps = options.eps(),
                                  .weight_decay = options.weight_decay(),
                                  .decoupled = options.decoupled(),
                                  .amsgrad = options.amsgrad(),
                                  .maximize = options.maximize(),
                                  .grad_scale = grad_scale});
    for (std::size_t i : stepped) {
      ++state.steps[i];
      for (const char* kind : kinds) state.kinds[kind].set_started(i);
    }
  }
}

}  // namespace lockstep::optim
