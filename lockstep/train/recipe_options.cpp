#include "lockstep/train/recipe_options.h"

#include <cmath>

#include "lockstep/core/check.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kMost = 1'000'000'000;  // products of two such numbers are still integers
constexpr int kMostThreads = 1024;

void check_count(const char* flag, std::int64_t value, std::int64_t least, const char* note = "") {
  LOCKSTEP_CHECK(value >= least, "{}: expected at least {}{} but got {}", flag, least, note, value);
  LOCKSTEP_CHECK(value <= kMost, "{}: expected at most {} but got {}", flag, kMost, value);
}

}  // namespace

void check_options(const RecipeOptions& o) {
  LOCKSTEP_CHECK(!o.exp_name.empty() && o.exp_name.find('/') == std::string::npos &&
                     o.exp_name != "." && o.exp_name != "..",
                 "--exp_name: expected a name without '/' but got '{}'", o.exp_name);
  LOCKSTEP_CHECK(std::isfinite(o.learning_rate) && o.learning_rate > 0,
                 "--learning_rate: expected a number above 0 but got {}", o.learning_rate);
  check_count("--batch_size", o.batch_size, 1);
  check_count("--epochs", o.epochs, 1);
  check_count("--warmup_epochs", o.warmup_epochs, 0);
  LOCKSTEP_CHECK(o.momentum >= 0 && o.momentum < 1,
                 "--momentum: expected a number in [0, 1) but got {}", o.momentum);
  LOCKSTEP_CHECK(std::isfinite(o.weight_decay) && o.weight_decay >= 0,
                 "--weight-decay: expected a number of at least 0 but got {}", o.weight_decay);
  check_count("--lookahead-k", o.lookahead_k, 0, " (0: off)");
  LOCKSTEP_CHECK(o.lookahead_alpha >= 0 && o.lookahead_alpha <= 1,
                 "--lookahead-alpha: expected a number in [0, 1] but got {}", o.lookahead_alpha);
  LOCKSTEP_CHECK(o.plateau_factor > 0 && o.plateau_factor < 1,
                 "--plateau-factor: expected a number in (0, 1) but got {}", o.plateau_factor);
  check_count("--plateau-patience", o.plateau_patience, 0);
  check_count("--stop-patience", o.stop_patience, 1);
  LOCKSTEP_CHECK(std::isfinite(o.bucket_cap_mb) && o.bucket_cap_mb >= 0,
                 "--bucket-cap-mb: expected at least 0 (0: default) but got {}", o.bucket_cap_mb);
  check_count("--workers", o.loader_workers, 0);
  LOCKSTEP_CHECK(o.loader_workers <= kMostThreads, "--workers: expected at most {} but got {}",
                 kMostThreads, o.loader_workers);
  check_count("--save-every", o.save_every, 0, " (0: off)");
}

}  // namespace lockstep::train
