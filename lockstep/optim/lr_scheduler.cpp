#include "lockstep/optim/lr_scheduler.h"

#include "lockstep/core/check.h"

namespace lockstep::optim {

LRScheduler::LRScheduler(Optimizer& optimizer, std::vector<Schedule> schedules,
                         OnForeignChange on_foreign_change, std::function<double(double)> momentum)
    : optimizer_(optimizer),
      schedules_(std::move(schedules)),
      on_foreign_change_(on_foreign_change),
      momentum_(std::move(momentum)) {
  const std::size_t groups = optimizer.param_groups().size();
  LOCKSTEP_CHECK(schedules_.size() == 1 || schedules_.size() == groups,
                 "lr scheduler: {} schedules given for {} parameter groups", schedules_.size(),
                 groups);
  apply();
}

void LRScheduler::step_to(double epoch) {
  LOCKSTEP_CHECK(epoch >= 0 && epoch < 9e15, "lr scheduler: step {} given, steps count from 0",
                 epoch);
  const double before = epoch_;
  epoch_ = epoch;
  try {
    apply();
  } catch (...) {
    epoch_ = before;
    throw;
  }
}

void LRScheduler::adopt_new_groups() {
  std::vector<OptimizerParamGroup>& groups = optimizer_.param_groups();
  LOCKSTEP_CHECK(schedules_.size() == 1 || schedules_.size() == groups.size(),
                 "lr scheduler: {} schedules but {} parameter groups", schedules_.size(),
                 groups.size());
  for (std::size_t g = base_lrs_.size(); g < groups.size(); ++g) {
    if (!groups[g].initial_lr()) groups[g].set_initial_lr(groups[g].lr());
    base_lrs_.push_back(*groups[g].initial_lr());
    last_lr_.push_back(base_lrs_.back());
    foreign_.push_back(1);
  }
}

void LRScheduler::apply() {
  adopt_new_groups();
  std::vector<OptimizerParamGroup>& groups = optimizer_.param_groups();
  std::vector<double> rates(groups.size()), foreign = foreign_;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    // A ratio to a scheduled rate of 0 says nothing: the schedule wins.
    if (groups[g].lr() != last_lr_[g] && last_lr_[g] != 0)
      foreign[g] *= groups[g].lr() / last_lr_[g];
    rates[g] = schedules_[schedules_.size() == 1 ? 0 : g](epoch_, base_lrs_[g]);
    if (on_foreign_change_ == OnForeignChange::kKeep) rates[g] *= foreign[g];
    check_option("lr scheduler", "lr", rates[g]);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].options().set_lr(rates[g]);
    if (momentum_) *groups[g].options().cycled_momentum() = momentum_(epoch_);
  }
  last_lr_ = std::move(rates);
  foreign_ = std::move(foreign);
}

StateDict LRScheduler::state_dict() const {
  StateDict dict;
  std::vector<double> rates;
  for (std::size_t g = 0; g < base_lrs_.size(); ++g)
    rates.push_back(optimizer_.param_groups()[g].lr());
  put(dict, "last_epoch", epoch_);
  put(dict, "base_lrs", base_lrs_);
  put(dict, "last_lr", last_lr_);
  put(dict, "foreign_change", foreign_);
  put(dict, "lr", rates);
  return dict;
}

void LRScheduler::load_state_dict(const StateDict& dict) {
  std::vector<OptimizerParamGroup>& groups = optimizer_.param_groups();
  const double epoch = get_number(dict, "last_epoch");
  std::vector<double> base_lrs = get_numbers(dict, "base_lrs", groups.size());
  std::vector<double> last_lr = get_numbers(dict, "last_lr", groups.size());
  std::vector<double> foreign = get_numbers(dict, "foreign_change", groups.size());
  const std::vector<double> rates = get_numbers(dict, "lr", groups.size());
  LOCKSTEP_CHECK(epoch >= 0, "load_state_dict: 'last_epoch' is {}", epoch);
  for (double rate : rates) check_option("load_state_dict", "lr", rate);
  epoch_ = epoch;
  base_lrs_ = std::move(base_lrs);
  last_lr_ = std::move(last_lr);
  foreign_ = std::move(foreign);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].options().set_lr(rates[g]);
    groups[g].set_initial_lr(base_lrs_[g]);
    if (momentum_) *groups[g].options().cycled_momentum() = momentum_(epoch_);
  }
}

}  // namespace lockstep::optim
