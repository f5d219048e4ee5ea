// Cuts the rate when a metric has stopped improving (torch's ReduceLROnPlateau).
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/optim/metric_mode.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep::optim {

enum class ThresholdMode { kRel, kAbs };

struct PlateauOptions {
  MetricMode mode = MetricMode::kMin;
  double factor = 0.1;
  std::int64_t patience = 10;  // bad epochs that are borne: the cut comes with the next one
  double threshold = 1e-4;
  ThresholdMode threshold_mode = ThresholdMode::kRel;
  std::int64_t cooldown = 0;         // epochs after a cut in which none is counted as bad
  std::vector<double> min_lr = {0};  // one for all groups, or one each
  double eps = 1e-8;                 // a cut that changes the rate by no more is left out
};

struct PlateauState {
  double best;  // ±inf before the first
  std::int64_t num_bad_epochs = 0;
  std::int64_t cooldown_counter = 0;
};

PlateauState plateau_start(const PlateauOptions& options);

// Whether the metric is better than the best: min/rel m < best (1 - t), min/abs m < best - t,
// max/rel m > best (1 + t), max/abs m > best + t. NaN never is.
bool plateau_better(double metric, double best, const PlateauOptions& options);

struct PlateauStep {
  PlateauState state;
  bool cut;
};
// One epoch: better? then best = m, bad = 0, else bad++; in cooldown: cooldown--, bad = 0; bad >
// patience: cut, cooldown starts, bad = 0.
PlateauStep plateau_step(PlateauState state, double metric, const PlateauOptions& options);

// max(lr * factor, min_lr) where that is more than eps below lr, else lr: it never rises.
double plateau_lr(double lr, double min_lr, const PlateauOptions& options);

class ReduceLROnPlateau {
 public:
  // Throws Error unless 0 <= factor < 1, the numbers are not negative and the count of min_lr fits.
  // May be made on an optimizer or a Lookahead around it; the optimizer must outlive it.
  explicit ReduceLROnPlateau(Optimizer& optimizer, PlateauOptions options = {});

  // True if this epoch cut the rate (of any group). All ranks must give the same metric.
  bool step(double metric);

  const PlateauState& state() const { return state_; }
  const PlateauOptions& options() const { return options_; }

  // Where it stands; the options are the constructor's and the rates the optimizer's.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& dict);

 private:
  double min_lr(std::size_t group) const;

  Optimizer& optimizer_;
  PlateauOptions options_;
  PlateauState state_;
};

}  // namespace lockstep::optim
