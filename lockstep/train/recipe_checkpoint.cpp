// What a run of the recipe saves and goes on from.
#include "lockstep/core/check.h"
#include "lockstep/core/generator.h"
#include "lockstep/train/checkpoint.h"
#include "lockstep/train/rank_state.h"
#include "lockstep/train/recipe_run.h"
#include "lockstep/train/resume_terms.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kTotals = 3;  // numbers that each rank keeps of the epoch under way

Tensor text_tensor(const std::string& text) {
  return tensor(std::vector<std::uint8_t>(text.begin(), text.end()));
}

const Tensor& tensor_at(const TensorMap& part, const std::string& key, DType dtype) {
  const auto it = part.find(key);
  LOCKSTEP_CHECK(it != part.end() && it->second.dtype() == dtype, "no {} '{}' in it", dtype, key);
  return it->second;
}

std::string text_at(const TensorMap& part, const std::string& key) {
  const Tensor& t = tensor_at(part, key, kU8);
  const auto* p = t.data<std::uint8_t>();
  return {p, p + t.numel()};
}

}  // namespace

void RecipeRun::save_best() {
  if (folder_.writes())
    save_checkpoint(folder_.best_path(), model_->module().state_dict(),
                    {model_->name(), /*weights_only=*/true});
}

void RecipeRun::save_last() {
  const TensorMap generators = gather_rank_states(default_generator().state(), *group_);
  // Totals are each rank's own until the epoch's end.
  const double mine[kTotals] = {epoch_totals_.loss_sum, static_cast<double>(epoch_totals_.correct),
                                static_cast<double>(epoch_totals_.count)};
  Tensor totals = empty({group_->size(), kTotals}, {.dtype = kF64});
  group_->all_gather(dist::span_of(mine, kTotals), dist::span_of(totals))->wait();
  if (!folder_.writes()) return;
  TensorMap state;
  insert_part(state, "model.", model_->module().state_dict());
  insert_part(state, "optimizer.", optimizer_->state_dict());
  insert_part(state, "rates.", rates_.state_dict());
  insert_part(state, "generator.", generators);
  TensorMap run;
  const data::LoaderPosition position = train_loader_.position();
  optim::put(run, "epoch", position.epoch);
  optim::put(run, "batch", position.batch);
  optim::put(run, "step", step_);
  optim::put(run, "rate_used", rate_used_);
  optim::put(run, "best_accuracy", best_accuracy_);
  optim::put(run, "last_accuracy", last_accuracy_);
  optim::put(run, "epochs_done", epochs_done_);
  optim::put(run, "stopped_early", stopped_early_);
  run["totals"] = totals;
  run["terms"] = text_tensor(terms_);
  insert_part(state, "run.", run);
  save_checkpoint(folder_.last_path(), state, {model_->name()});
}

void RecipeRun::resume(const std::string& path) {
  const TensorMap state = load_checkpoint(path, model_->name());
  try {
    restore(state);
  } catch (const Error& e) {
    throw Error(fmt::format("checkpoint {}: {}", path, e.what()));
  }
  agreement_.require_same("number of steps in the checkpoint", static_cast<double>(step_));
  if (!folder_.holds(path)) tell_if_moved(folder_.set_aside());
  // Without the weights of the best epoch so far, the next one is the best.
  if (!agreement_.decide(folder_.adopt_best(path), Vote::kRank0)) best_accuracy_ = -1;
}

void RecipeRun::restore(const TensorMap& state) {
  const TensorMap run = extract_part(state, "run.");
  const Tensor generator =
      rank_state_of(extract_part(state, "generator."), group_->rank(), group_->size());
  const std::string difference = terms_difference(text_at(run, "terms"), terms_);
  LOCKSTEP_CHECK(difference.empty(), "a resumed run must go on as it began, but {}", difference);
  model_->module().load_state_dict(extract_part(state, "model."));
  optimizer_->load_state_dict(extract_part(state, "optimizer."));
  rates_.load_state_dict(extract_part(state, "rates."));
  default_generator().set_state(generator);
  step_ = optim::get_integer(run, "step");
  rate_used_ = optim::get_number(run, "rate_used");
  best_accuracy_ = optim::get_number(run, "best_accuracy");
  last_accuracy_ = optim::get_number(run, "last_accuracy");
  epochs_done_ = optim::get_integer(run, "epochs_done");
  stopped_early_ = optim::get_flag(run, "stopped_early");
  const Tensor& totals = tensor_at(run, "totals", kF64);
  LOCKSTEP_CHECK((totals.shape() == Shape{group_->size(), kTotals}),
                 "totals have shape {}, expected {} ranks", totals.shape(), group_->size());
  const auto* t = totals.data<double>() + kTotals * group_->rank();
  epoch_totals_ = {t[0], static_cast<std::int64_t>(t[1]), static_cast<std::int64_t>(t[2])};
  train_loader_.restore({optim::get_integer(run, "epoch"), optim::get_integer(run, "batch")});
}

}  // namespace lockstep::train
