// What a run of the recipe is told: one field per flag of lockstep-train.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/train/agree.h"

namespace lockstep::train {

enum class WarmupType { kLinear, kCosine };
enum class WarmupUnit { kStep, kEpoch };

struct RecipeOptions {
  // The recipe's own flags, with its defaults.
  std::string exp_name = "DDP_warmup";
  double learning_rate = 0.1;
  std::int64_t batch_size = 1024;  // per rank
  std::int64_t epochs = 500;       // at most
  std::int64_t warmup_epochs = 10;
  WarmupType warmup_type = WarmupType::kLinear;  // cosine: decays to 0 after the warm-up
  std::uint64_t seed = 42;
  std::string model_path = "./experiment_model/";

  // The published code's arithmetic: loss divided by the batch size once more, warm-up by epochs
  // from a rate of 0, no cosine after it, plateau cuts overwritten during warm-up, Lookahead's
  // first-sync form, the quirks of its early stopping.
  bool recipe_compat = false;

  std::string model = "toy_net";
  WarmupUnit warmup_unit = WarmupUnit::kStep;
  double momentum = 0.9;
  double weight_decay = 0;
  std::int64_t lookahead_k = 10;
  double lookahead_alpha = 0.5;
  double plateau_factor = 0.1;
  std::int64_t plateau_patience = 6;
  std::int64_t stop_patience = 30;
  Vote stop_vote = Vote::kAll;
  double bucket_cap_mb = 0;  // 0: DDP's default
  int loader_workers = 1;

  // Also saves the last checkpoint every so many steps within an epoch; 0: at epochs' ends only.
  std::int64_t save_every = 0;
  // A checkpoint to go on from; empty: start anew.
  std::string resume;
};

// Throws Error naming the flag, the value and what is wanted.
void check_options(const RecipeOptions& options);

}  // namespace lockstep::train
