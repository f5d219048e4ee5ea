// The recipe's learning rate: warm-up, then constant or cosine, with cuts where the validation loss
// stands still; and when to stop.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/optim/early_stopping.h"
#include "lockstep/optim/lr_scheduler.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/reduce_lr_on_plateau.h"
#include "lockstep/train/agree.h"
#include "lockstep/train/recipe_options.h"

namespace lockstep::train {

class RateControl {
 public:
  // `steps_per_epoch` are the optimizer's steps on one rank.
  RateControl(optim::Optimizer& optimizer, const RecipeOptions& options,
              std::int64_t steps_per_epoch);

  // After each optimizer step.
  void after_step();
  // After each epoch's validation, with a loss that all ranks agree on. True: stop (this rank's
  // vote).
  bool after_epoch(const Agreed& valid_loss);

  double learning_rate() const;

  TensorMap state_dict() const;
  void load_state_dict(const TensorMap& state);

 private:
  optim::Optimizer& optimizer_;
  bool by_step_;
  bool recipe_compat_;
  std::int64_t warmup_epochs_;
  std::int64_t epoch_ = 0;
  std::unique_ptr<optim::LRScheduler> warmup_;
  optim::ReduceLROnPlateau plateau_;
  optim::EarlyStopping stopping_;
};

}  // namespace lockstep::train
