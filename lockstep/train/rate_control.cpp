#include "lockstep/train/rate_control.h"

#include "lockstep/optim/schedulers.h"
#include "lockstep/train/checkpoint.h"

namespace lockstep::train {
namespace {

std::unique_ptr<optim::LRScheduler> make_warmup(optim::Optimizer& optimizer, const RecipeOptions& o,
                                                std::int64_t steps_per_epoch) {
  if (o.recipe_compat) {
    const auto w = static_cast<double>(o.warmup_epochs);
    return std::make_unique<optim::LambdaLR>(
        optimizer,
        [w](std::int64_t e) { return static_cast<double>(e) < w ? static_cast<double>(e) / w : 1; },
        optim::OnForeignChange::kOverwrite);
  }
  const std::int64_t unit = o.warmup_unit == WarmupUnit::kStep ? steps_per_epoch : 1;
  optim::WarmupLROptions warmup;
  warmup.warmup_steps = o.warmup_epochs * unit;
  if (o.warmup_type == WarmupType::kCosine)
    warmup.cosine_total = std::max(o.epochs, o.warmup_epochs + 1) * unit;
  return std::make_unique<optim::WarmupLR>(optimizer, warmup);
}

optim::PlateauOptions plateau_options(const RecipeOptions& o) {
  optim::PlateauOptions plateau;
  plateau.factor = o.plateau_factor;
  plateau.patience = o.plateau_patience;
  return plateau;
}

optim::EarlyStoppingOptions stopping_options(const RecipeOptions& o) {
  optim::EarlyStoppingOptions stopping;
  stopping.patience = o.stop_patience;
  stopping.recipe_compat = o.recipe_compat;
  return stopping;
}

}  // namespace

RateControl::RateControl(optim::Optimizer& optimizer, const RecipeOptions& options,
                         std::int64_t steps_per_epoch)
    : optimizer_(optimizer),
      by_step_(!options.recipe_compat && options.warmup_unit == WarmupUnit::kStep),
      recipe_compat_(options.recipe_compat),
      warmup_epochs_(options.warmup_epochs),
      warmup_(make_warmup(optimizer, options, steps_per_epoch)),
      plateau_(optimizer, plateau_options(options)),
      stopping_(stopping_options(options)) {}

void RateControl::after_step() {
  if (by_step_) warmup_->step();
}

bool RateControl::after_epoch(const Agreed& valid_loss) {
  // The published code stops stepping its warm-up, and with it the cosine, after epoch W.
  const bool steps_now = recipe_compat_ ? epoch_ <= warmup_epochs_ : !by_step_;
  ++epoch_;
  if (steps_now) warmup_->step();
  plateau_.step(valid_loss.value());
  return stopping_.step(valid_loss.value());
}

double RateControl::learning_rate() const { return optimizer_.param_groups().front().lr(); }

TensorMap RateControl::state_dict() const {
  TensorMap state;
  insert_part(state, "warmup.", warmup_->state_dict());
  insert_part(state, "plateau.", plateau_.state_dict());
  insert_part(state, "stopping.", stopping_.state_dict());
  optim::put(state, "epoch", epoch_);
  return state;
}

void RateControl::load_state_dict(const TensorMap& state) {
  warmup_->load_state_dict(extract_part(state, "warmup."));
  plateau_.load_state_dict(extract_part(state, "plateau."));
  stopping_.load_state_dict(extract_part(state, "stopping."));
  epoch_ = optim::get_integer(state, "epoch");
}

}  // namespace lockstep::train
