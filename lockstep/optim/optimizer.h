// What all optimizers share: parameter groups, gradients to none, and the saved state.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/optim/flat_state.h"
#include "lockstep/optim/param_group.h"

namespace lockstep::optim {

// Not thread-safe. A parameter without gradient is left untouched by step(), also under weight
// decay. A parameter listed twice in one group is stepped once.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes every parameter that has a gradient.
  void step() { step_scaled(1.0); }
  // The same with all gradients multiplied by grad_scale as they are read: unscaling, clipping and
  // averaging cost no pass of their own.
  virtual void step_scaled(double grad_scale) = 0;

  // Gradients to none, or to zeros kept in place.
  void zero_grad(bool set_to_none = true);

  // Throws Error for a parameter that is undefined, not a leaf, not floating, not dense or already
  // in another group, and for options of another optimizer.
  void add_param_group(OptimizerParamGroup group);

  std::vector<OptimizerParamGroup>& param_groups() { return *groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return *groups_; }
  // Options of groups that bring none.
  OptimizerOptions& defaults() { return *defaults_; }

  // Keys: group.<g>.{num_params, <option>, initial_lr}, state.<p>.{step, <kind>}, where p counts
  // the parameters through all groups. Tensors are copies, in the parameter's shape.
  virtual StateDict state_dict() const;
  // Replaces options and state, in the storage that the state has; parameters stay. Throws Error,
  // and changes nothing, where counts, shapes, dtypes or options don't fit.
  virtual void load_state_dict(const StateDict& dict);

 protected:
  using Groups = std::vector<OptimizerParamGroup>;

  // State of one group: flat storage per kind and the number of steps of each parameter.
  struct GroupState {
    std::map<std::string, FlatState> kinds;
    std::vector<std::int64_t> steps;
  };

  Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults);
  // Shares the groups of another optimizer; keeps no state of its own here.
  explicit Optimizer(const Optimizer& inner, std::unique_ptr<OptimizerOptions> defaults);

  // Names of the state tensors that this optimizer keeps.
  virtual std::vector<std::string> state_kinds() const = 0;
  GroupState& group_state(std::size_t group);

  // The gradient of p in p's own layout (itself if it has it).
  static Tensor laid_out_grad(const Variable& p);

 private:
  std::shared_ptr<Groups> groups_;
  std::unique_ptr<OptimizerOptions> defaults_;
  std::vector<GroupState> states_;
};

}  // namespace lockstep::optim
