// Says when a metric has not improved for so long that training should end.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/optim/metric_mode.h"
#include "lockstep/optim/state_dict.h"

namespace lockstep::optim {

struct EarlyStoppingOptions {
  std::int64_t patience = 100;  // epochs without improvement after which to stop
  double delta = 0;             // what counts as improvement is more than this
  MetricMode mode = MetricMode::kMin;
  // The published recipe's comparisons, to the letter: a metric equal to the best (within delta)
  // counts as improvement, so that a flat one never stops; a NaN counts as improvement too and
  // becomes the best, so that it wipes what was remembered.
  bool recipe_compat = false;
};

struct EarlyStoppingState {
  std::optional<double> best;  // none before the first improvement
  std::int64_t counter = 0;    // epochs since it
  bool stop = false;           // stays true
};

// One epoch. min mode: improvement is metric < best - delta, max mode metric > best + delta; the
// first number counts as one, a NaN never does, nor does a flat metric. Else counter++; stop from
// counter >= patience on.
EarlyStoppingState early_stopping_step(EarlyStoppingState state, double metric,
                                       const EarlyStoppingOptions& options);

class EarlyStopping {
 public:
  // Throws Error unless patience >= 1 and delta is finite and not negative.
  explicit EarlyStopping(const EarlyStoppingOptions& options = {});

  // True if training should end. All ranks must give the same metric, or agree on the answer.
  bool step(double metric);

  bool should_stop() const { return state_.stop; }
  const EarlyStoppingState& state() const { return state_; }

  StateDict state_dict() const;
  void load_state_dict(const StateDict& dict);

 private:
  EarlyStoppingOptions options_;
  EarlyStoppingState state_;
};

}  // namespace lockstep::optim
