#include "lockstep/optim/optimizer.h"

#include <set>
#include <typeinfo>

#include "lockstep/core/check.h"

namespace lockstep::optim {
namespace {

std::string group_key(std::size_t group) { return fmt::format("group.{}.", group); }
std::string state_key(std::size_t param) { return fmt::format("state.{}.", param); }

void check_param(const Variable& p, std::size_t index) {
  LOCKSTEP_CHECK(p.defined(), "add_param_group: parameter {} is undefined", index);
  LOCKSTEP_CHECK(is_floating(p.dtype()), "add_param_group: parameter {} is {}, wanted floating",
                 index, p.dtype());
  LOCKSTEP_CHECK(p.is_leaf(), "add_param_group: parameter {} {} is the result of an operation",
                 index, p.shape());
  LOCKSTEP_CHECK(p.data().is_dense(), "add_param_group: parameter {} {} is not dense (strides {})",
                 index, p.shape(), p.data().strides());
}

}  // namespace

Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups,
                     std::unique_ptr<OptimizerOptions> defaults)
    : groups_(std::make_shared<Groups>()), defaults_(std::move(defaults)) {
  defaults_->check();
  for (OptimizerParamGroup& group : groups) add_param_group(std::move(group));
}

Optimizer::Optimizer(const Optimizer& inner, std::unique_ptr<OptimizerOptions> defaults)
    : groups_(inner.groups_), defaults_(std::move(defaults)) {}

void Optimizer::add_param_group(OptimizerParamGroup group) {
  if (!group.has_options()) group.set_options(defaults_->clone());
  const OptimizerOptions& options = group.options();
  LOCKSTEP_CHECK(typeid(options) == typeid(*defaults_),
                 "add_param_group: the group's options belong to another optimizer");
  options.check();

  std::set<const void*> elsewhere, here;
  for (const OptimizerParamGroup& other : *groups_)
    for (const Variable& p : other.params()) elsewhere.insert(p.id());
  std::vector<Variable> unique;
  for (std::size_t i = 0; i < group.params_.size(); ++i) {
    const Variable& p = group.params_[i];
    check_param(p, i);
    LOCKSTEP_CHECK(!elsewhere.contains(p.id()),
                   "add_param_group: parameter {} {} is already in another group", i, p.shape());
    if (here.insert(p.id()).second) unique.push_back(p);
  }
  group.params_ = std::move(unique);
  groups_->push_back(std::move(group));
}

void Optimizer::zero_grad(bool set_to_none) {
  for (OptimizerParamGroup& group : *groups_)
    for (Variable& p : group.params_) p.zero_grad(set_to_none);
}

Optimizer::GroupState& Optimizer::group_state(std::size_t group) {
  if (states_.size() < groups_->size()) states_.resize(groups_->size());
  GroupState& state = states_[group];
  state.steps.resize((*groups_)[group].params().size(), 0);
  return state;
}

Tensor Optimizer::laid_out_grad(const Variable& p) {
  const Tensor& grad = p.grad();
  if (grad.strides() == p.data().strides()) return grad;
  Tensor laid_out = empty_like(p.data());
  copy_elements(laid_out, grad);
  return laid_out;
}

StateDict Optimizer::state_dict() const {
  StateDict dict;
  std::size_t first = 0;
  for (std::size_t g = 0; g < groups_->size(); ++g) {
    const OptimizerParamGroup& group = (*groups_)[g];
    const std::size_t count = group.params().size();
    group.options().save(dict, group_key(g));
    put(dict, group_key(g) + "num_params", static_cast<std::int64_t>(count));
    if (group.initial_lr()) put(dict, group_key(g) + "initial_lr", *group.initial_lr());
    for (std::size_t i = 0; g < states_.size() && i < count; ++i) {
      const GroupState& state = states_[g];
      if (i < state.steps.size() && state.steps[i] != 0)
        put(dict, state_key(first + i) + "step", state.steps[i]);
      for (const auto& [kind, flat] : state.kinds)
        if (flat.started(i)) dict[state_key(first + i) + kind] = flat.saved(i);
    }
    first += count;
  }
  return dict;
}

void Optimizer::load_state_dict(const StateDict& dict) {
  const std::size_t groups = groups_->size();
  LOCKSTEP_CHECK(find(dict, group_key(groups) + "num_params") == nullptr,
                 "load_state_dict: the saved optimizer has more than {} parameter groups", groups);
  struct Loaded {
    std::unique_ptr<OptimizerOptions> options;
    std::vector<std::int64_t> steps;
    std::map<std::string, std::vector<Tensor>> kinds;
  };
  std::vector<Loaded> loaded;
  std::size_t first = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::vector<Variable>& params = (*groups_)[g].params();
    const std::int64_t count = get_integer(dict, group_key(g) + "num_params");
    LOCKSTEP_CHECK(count == static_cast<std::int64_t>(params.size()),
                   "load_state_dict: group {} was saved with {} parameters but has {}", g, count,
                   params.size());
    Loaded part{(*groups_)[g].options().clone(), {}, {}};
    part.options->load(dict, group_key(g));
    for (std::size_t i = 0; i < params.size(); ++i) {
      const std::string key = state_key(first + i) + "step";
      part.steps.push_back(find(dict, key) ? get_integer(dict, key) : 0);
    }
    for (const std::string& kind : state_kinds())
      part.kinds[kind] =
          find_saved(dict, params, [&](std::size_t i) { return state_key(first + i) + kind; });
    first += params.size();
    loaded.push_back(std::move(part));
  }
  for (std::size_t g = 0; g < groups; ++g) {
    OptimizerParamGroup& group = (*groups_)[g];
    const std::string initial = group_key(g) + "initial_lr";
    group.set_options(std::move(loaded[g].options));
    group.set_initial_lr(find(dict, initial) ? std::optional(get_number(dict, initial))
                                             : std::nullopt);
    GroupState& state = group_state(g);
    state.steps = std::move(loaded[g].steps);
    for (const auto& [kind, saved] : loaded[g].kinds) state.kinds[kind].load(group.params(), saved);
  }
}

}  // namespace lockstep::optim
