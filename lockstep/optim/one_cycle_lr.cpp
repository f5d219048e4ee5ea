#include "lockstep/optim/one_cycle_lr.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/core/check.h"

namespace lockstep::optim {
namespace {

// Where a step lies: between the marks `from` and `from` + 1, `share` of the way.
struct Place {
  int from;
  double share;
};

Place place_of(std::int64_t step, const OneCycleOptions& options) {
  const auto total = static_cast<double>(options.total_steps);
  std::vector<double> ends{options.pct_start * total - 1};
  if (options.three_phase) ends.push_back(2 * options.pct_start * total - 2);
  ends.push_back(total - 1);
  const double at = std::min(static_cast<double>(step), total - 1);
  double start = 0;
  for (std::size_t phase = 0;; ++phase) {
    if (at <= ends[phase] || phase + 1 == ends.size()) {
      const double length = ends[phase] - start;
      return {static_cast<int>(phase), length > 0 ? (at - start) / length : 1.0};
    }
    start = ends[phase];
  }
}

double anneal(double from, double to, double share, Anneal strategy) {
  if (strategy == Anneal::kLinear) return from + (to - from) * share;
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}

// Sets the groups' rates and says each group's schedule.
std::vector<Schedule> take_over(Optimizer& optimizer, const std::vector<double>& max_lr,
                                const OneCycleOptions& options) {
  check(options);
  std::vector<OptimizerParamGroup>& groups = optimizer.param_groups();
  LOCKSTEP_CHECK(max_lr.size() == 1 || max_lr.size() == groups.size(),
                 "OneCycleLR: {} maximum rates given for {} parameter groups", max_lr.size(),
                 groups.size());
  for (double rate : max_lr) check_option("OneCycleLR", "max_lr", rate);
  for (OptimizerParamGroup& group : groups)
    LOCKSTEP_CHECK(!options.cycle_momentum || group.options().cycled_momentum() != nullptr,
                   "OneCycleLR: the optimizer has no momentum to cycle");
  std::vector<Schedule> schedules;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double highest = max_lr[max_lr.size() == 1 ? 0 : g];
    groups[g].set_initial_lr(highest / options.div_factor);
    groups[g].options().set_lr(highest / options.div_factor);
    schedules.emplace_back([highest, options](double step, double) {
      LOCKSTEP_CHECK(step <= static_cast<double>(options.total_steps),
                     "OneCycleLR: step {} is beyond the cycle's {} steps", step,
                     options.total_steps);
      return lr_at(static_cast<std::int64_t>(step), highest, options);
    });
  }
  return schedules;
}

}  // namespace

double lr_at(std::int64_t step, double max_lr, const OneCycleOptions& options) {
  const double initial = max_lr / options.div_factor;
  const double last = initial / options.final_div_factor;
  const Place place = place_of(step, options);
  const std::vector<double> marks = options.three_phase
                                        ? std::vector{initial, max_lr, initial, last}
                                        : std::vector{initial, max_lr, last};
  const auto from = static_cast<std::size_t>(place.from);
  return anneal(marks[from], marks[from + 1], place.share, options.anneal_strategy);
}

double momentum_at(std::int64_t step, const OneCycleOptions& options) {
  const double high = options.max_momentum, low = options.base_momentum;
  const double marks[] = {high, low, high, high};
  const Place place = place_of(step, options);
  return anneal(marks[place.from], marks[place.from + 1], place.share, options.anneal_strategy);
}

void check(const OneCycleOptions& options) {
  LOCKSTEP_CHECK(options.total_steps >= 1, "OneCycleLR: total_steps must be at least 1 but is {}",
                 options.total_steps);
  LOCKSTEP_CHECK(options.pct_start >= 0 && options.pct_start <= 1,
                 "OneCycleLR: pct_start must be in [0, 1] but is {}", options.pct_start);
  LOCKSTEP_CHECK(options.div_factor > 0 && options.final_div_factor > 0,
                 "OneCycleLR: div_factor {} and final_div_factor {} must be positive",
                 options.div_factor, options.final_div_factor);
  for (double momentum : {options.base_momentum, options.max_momentum})
    LOCKSTEP_CHECK(momentum >= 0 && momentum < 1,
                   "OneCycleLR: a momentum must be in [0, 1) but is {}", momentum);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const std::vector<double>& max_lr,
                       const OneCycleOptions& options)
    : LRScheduler(
          optimizer, take_over(optimizer, max_lr, options), OnForeignChange::kKeep,
          options.cycle_momentum
              ? [options](
                    double step) { return momentum_at(static_cast<std::int64_t>(step), options); }
              : std::function<double(double)>()) {}

}  // namespace lockstep::optim
