// The one-cycle policy: the rate rises to a maximum and falls far below its start, the momentum the
// other way (Smith & Topin 2018). Names, defaults and values of torch's OneCycleLR.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/optim/lr_scheduler.h"

namespace lockstep::optim {

enum class Anneal { kCosine, kLinear };

struct OneCycleOptions {
  std::int64_t total_steps = 0;  // of the whole cycle: epochs * steps per epoch
  double pct_start = 0.3;        // share of the steps in which the rate rises
  Anneal anneal_strategy = Anneal::kCosine;
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         // initial rate = max_lr / div_factor
  double final_div_factor = 1e4;  // last rate = initial rate / final_div_factor
  bool three_phase = false;       // fall back to the initial rate first, then to the last one
};

// The rate and the momentum of step 0 … total_steps - 1; later steps have the last one's.
double lr_at(std::int64_t step, double max_lr, const OneCycleOptions& options);
double momentum_at(std::int64_t step, const OneCycleOptions& options);
// Throws Error where the options are not usable.
void check(const OneCycleOptions& options);

// Takes the rate over: lr and initial_lr of each group become max_lr / div_factor. Cycles SGD's
// momentum or Adam's first beta. A step beyond total_steps is an Error.
class OneCycleLR : public LRScheduler {
 public:
  // max_lr: one for all groups, or one each.
  OneCycleLR(Optimizer& optimizer, const std::vector<double>& max_lr,
             const OneCycleOptions& options);
  OneCycleLR(Optimizer& optimizer, double max_lr, const OneCycleOptions& options)
      : OneCycleLR(optimizer, std::vector<double>{max_lr}, options) {}
};

}  // namespace lockstep::optim
