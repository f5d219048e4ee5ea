// What all learning-rate schedulers share: a schedule per parameter group, carried out step by
// step.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/optim/lr_schedules.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep::optim {

// What happens to a change that others made to the rate since the scheduler's last step: a cut by
// ReduceLROnPlateau, another scheduler, the user.
enum class OnForeignChange {
  kKeep,       // it stays in force: the schedule's value times the ratio of the change
  kOverwrite,  // it is lost: the schedule's value, as PyTorch's LambdaLR
};

// As in PyTorch the constructor sets the rate of step 0 and step() goes to the next. The base rate
// of a group is its initial_lr, taken from lr by the first scheduler. May be made on an optimizer
// or on a Lookahead around it. The optimizer must outlive the scheduler. Groups that are added
// later follow the schedule too if there is one for all.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  void step() { step_to(std::floor(epoch_) + 1); }
  // Goes to any step, where the schedule allows it a fraction of one. Throws Error if negative.
  void step_to(double epoch);

  // Steps taken since the constructor's.
  std::int64_t last_epoch() const { return static_cast<std::int64_t>(epoch_); }
  const std::vector<double>& base_lrs() const { return base_lrs_; }
  // The rates that the last step set.
  const std::vector<double>& get_last_lr() const { return last_lr_; }

  // Where the schedule stands and the groups' rates; the schedule itself is the constructor's.
  StateDict state_dict() const;
  // Restores both, whether the optimizer's state is loaded before or after. Throws Error, and
  // changes nothing, where the groups don't fit.
  void load_state_dict(const StateDict& dict);

 protected:
  // One schedule for all groups or one for each. `momentum`, where given, is set on every group.
  LRScheduler(Optimizer& optimizer, std::vector<Schedule> schedules,
              OnForeignChange on_foreign_change = OnForeignChange::kKeep,
              std::function<double(double step)> momentum = {});

 private:
  void adopt_new_groups();
  void apply();

  Optimizer& optimizer_;
  std::vector<Schedule> schedules_;
  OnForeignChange on_foreign_change_;
  std::function<double(double)> momentum_;
  double epoch_ = 0;
  std::vector<double> base_lrs_, last_lr_;
  std::vector<double> foreign_;  // product of the changes that others made
};

}  // namespace lockstep::optim
