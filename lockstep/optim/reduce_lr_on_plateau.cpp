#include "lockstep/optim/reduce_lr_on_plateau.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/check.h"

namespace lockstep::optim {
namespace {

constexpr const char* kName = "ReduceLROnPlateau";

void check_options(const PlateauOptions& options, std::size_t groups) {
  LOCKSTEP_CHECK(options.factor >= 0 && options.factor < 1,
                 "{}: factor must be in [0, 1) but is {}", kName, options.factor);
  LOCKSTEP_CHECK(options.patience >= 0 && options.cooldown >= 0,
                 "{}: patience {} and cooldown {} must not be negative", kName, options.patience,
                 options.cooldown);
  check_option(kName, "threshold", options.threshold);
  check_option(kName, "eps", options.eps);
  LOCKSTEP_CHECK(options.min_lr.size() == 1 || options.min_lr.size() == groups,
                 "{}: {} minimum rates given for {} parameter groups", kName, options.min_lr.size(),
                 groups);
  for (double rate : options.min_lr) check_option(kName, "min_lr", rate);
}

}  // namespace

PlateauState plateau_start(const PlateauOptions& options) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return {options.mode == MetricMode::kMin ? kInf : -kInf, 0, 0};
}

bool plateau_better(double metric, double best, const PlateauOptions& options) {
  const bool min = options.mode == MetricMode::kMin;
  const double t = min ? -options.threshold : options.threshold;
  double bound = best;
  // inf * (1 - 1) would be NaN: an infinite best is its own bound.
  if (std::isfinite(best))
    bound = options.threshold_mode == ThresholdMode::kRel ? best * (1 + t) : best + t;
  return min ? metric < bound : metric > bound;
}

PlateauStep plateau_step(PlateauState state, double metric, const PlateauOptions& options) {
  if (plateau_better(metric, state.best, options)) {
    state.best = metric;
    state.num_bad_epochs = 0;
  } else {
    ++state.num_bad_epochs;
  }
  if (state.cooldown_counter > 0) {
    --state.cooldown_counter;
    state.num_bad_epochs = 0;
  }
  const bool cut = state.num_bad_epochs > options.patience;
  if (cut) {
    state.cooldown_counter = options.cooldown;
    state.num_bad_epochs = 0;
  }
  return {state, cut};
}

double plateau_lr(double lr, double min_lr, const PlateauOptions& options) {
  const double lower = std::max(lr * options.factor, min_lr);
  return lr - lower > options.eps ? lower : lr;
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, PlateauOptions options)
    : optimizer_(optimizer), options_(std::move(options)), state_(plateau_start(options_)) {
  check_options(options_, optimizer.param_groups().size());
}

double ReduceLROnPlateau::min_lr(std::size_t group) const {
  if (options_.min_lr.size() == 1) return options_.min_lr[0];
  LOCKSTEP_CHECK(group < options_.min_lr.size(), "{}: no minimum rate for group {}", kName, group);
  return options_.min_lr[group];
}

bool ReduceLROnPlateau::step(double metric) {
  const auto [state, cut] = plateau_step(state_, metric, options_);
  state_ = state;
  if (!cut) return false;
  bool changed = false;
  for (std::size_t g = 0; g < optimizer_.param_groups().size(); ++g) {
    OptimizerParamGroup& group = optimizer_.param_groups()[g];
    const double lr = plateau_lr(group.lr(), min_lr(g), options_);
    changed = changed || lr != group.lr();
    group.options().set_lr(lr);
  }
  return changed;
}

StateDict ReduceLROnPlateau::state_dict() const {
  StateDict dict;
  put(dict, "best", state_.best);
  put(dict, "num_bad_epochs", state_.num_bad_epochs);
  put(dict, "cooldown_counter", state_.cooldown_counter);
  return dict;
}

void ReduceLROnPlateau::load_state_dict(const StateDict& dict) {
  state_ = {get_number(dict, "best"), get_integer(dict, "num_bad_epochs"),
            get_integer(dict, "cooldown_counter")};
}

}  // namespace lockstep::optim
