#include "lockstep/optim/early_stopping.h"

#include <cmath>

#include "lockstep/core/check.h"

namespace lockstep::optim {
namespace {

bool improves(const EarlyStoppingState& state, double metric, const EarlyStoppingOptions& options) {
  const double sign = options.mode == MetricMode::kMin ? -1 : 1;
  const double score = sign * metric;
  // NaN has to come out of the negated comparison as an improvement: that is the recipe's quirk.
  if (options.recipe_compat) return !state.best || !(score < sign * *state.best + options.delta);
  if (std::isnan(metric)) return false;
  return !state.best || score > sign * *state.best + options.delta;
}

}  // namespace

EarlyStoppingState early_stopping_step(EarlyStoppingState state, double metric,
                                       const EarlyStoppingOptions& options) {
  if (improves(state, metric, options)) {
    state.best = metric;
    state.counter = 0;
  } else {
    ++state.counter;
    state.stop = state.stop || state.counter >= options.patience;
  }
  return state;
}

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options) : options_(options) {
  LOCKSTEP_CHECK(options.patience >= 1, "EarlyStopping: patience must be at least 1 but is {}",
                 options.patience);
  LOCKSTEP_CHECK(std::isfinite(options.delta) && options.delta >= 0,
                 "EarlyStopping: delta must be finite and not negative but is {}", options.delta);
}

bool EarlyStopping::step(double metric) {
  state_ = early_stopping_step(state_, metric, options_);
  return state_.stop;
}

StateDict EarlyStopping::state_dict() const {
  StateDict dict;
  if (state_.best) put(dict, "best", *state_.best);
  put(dict, "counter", state_.counter);
  put(dict, "stop", state_.stop);
  return dict;
}

void EarlyStopping::load_state_dict(const StateDict& dict) {
  state_ = {find(dict, "best") ? std::optional(get_number(dict, "best")) : std::nullopt,
            get_integer(dict, "counter"), get_flag(dict, "stop")};
}

}  // namespace lockstep::optim
