#include "lockstep/train/recipe_options.h"

#include <cmath>

#include "lockstep/core/check.h"

namespace lockstep::train {

void check_options(const RecipeOptions& o) {
  LOCKSTEP_CHECK(!o.exp_name.empty() && o.exp_name.find('/') == std::string::npos,
                 "--exp_name: expected a name without '/' but got '{}'", o.exp_name);
  LOCKSTEP_CHECK(std::isfinite(o.learning_rate) && o.learning_rate > 0,
                 "--learning_rate: expected a number above 0 but got {}", o.learning_rate);
  LOCKSTEP_CHECK(o.batch_size >= 1, "--batch_size: expected at least 1 but got {}", o.batch_size);
  LOCKSTEP_CHECK(o.epochs >= 1, "--epochs: expected at least 1 but got {}", o.epochs);
  LOCKSTEP_CHECK(o.warmup_epochs >= 0, "--warmup_epochs: expected at least 0 but got {}",
                 o.warmup_epochs);
  LOCKSTEP_CHECK(o.momentum >= 0 && o.momentum < 1,
                 "--momentum: expected a number in [0, 1) but got {}", o.momentum);
  LOCKSTEP_CHECK(std::isfinite(o.weight_decay) && o.weight_decay >= 0,
                 "--weight-decay: expected a number of at least 0 but got {}", o.weight_decay);
  LOCKSTEP_CHECK(o.lookahead_k >= 0, "--lookahead-k: expected at least 0 (0: off) but got {}",
                 o.lookahead_k);
  LOCKSTEP_CHECK(o.lookahead_alpha >= 0 && o.lookahead_alpha <= 1,
                 "--lookahead-alpha: expected a number in [0, 1] but got {}", o.lookahead_alpha);
  LOCKSTEP_CHECK(o.plateau_factor > 0 && o.plateau_factor < 1,
                 "--plateau-factor: expected a number in (0, 1) but got {}", o.plateau_factor);
  LOCKSTEP_CHECK(o.plateau_patience >= 0, "--plateau-patience: expected at least 0 but got {}",
                 o.plateau_patience);
  LOCKSTEP_CHECK(o.stop_patience >= 1, "--stop-patience: expected at least 1 but got {}",
                 o.stop_patience);
  LOCKSTEP_CHECK(o.bucket_cap_mb >= 0,
                 "--bucket-cap-mb: expected at least 0 (0: default) but got {}", o.bucket_cap_mb);
  LOCKSTEP_CHECK(o.loader_workers >= 0, "--workers: expected at least 0 but got {}",
                 o.loader_workers);
  LOCKSTEP_CHECK(o.save_every >= 0, "--save-every: expected at least 0 (0: off) but got {}",
                 o.save_every);
}

}  // namespace lockstep::train
