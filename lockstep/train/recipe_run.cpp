#include "lockstep/train/recipe_run.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <string_view>

#include "lockstep/autograd/grad_mode.h"
#include "lockstep/autograd/ops/cross_entropy.h"
#include "lockstep/core/check.h"
#include "lockstep/core/log.h"
#include "lockstep/core/pinned_memory.h"
#include "lockstep/data/shard.h"
#include "lockstep/optim/lookahead.h"
#include "lockstep/optim/sgd.h"
#include "lockstep/train/plain_nan.h"
#include "lockstep/train/resume_terms.h"

namespace lockstep::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// 0 where nothing was measured.
double ratio(double sum, double count) { return count > 0 ? sum / count : 0; }

RecipeOptions checked(RecipeOptions options, const RecipeData& data, int world) {
  check_options(options);
  LOCKSTEP_CHECK(data.train && data.train->size() > 0, "training set: it is empty");
  LOCKSTEP_CHECK(data.valid && data.valid->size() > 0, "validation set: it is empty");
  data::check_enough_examples(data.train->size(), world);
  return options;
}

std::shared_ptr<data::DistributedSampler> make_train_sampler(const RecipeOptions& o,
                                                             const RecipeData& data, int rank,
                                                             int world) {
  data::DistributedSamplerOptions sampler;
  // The published code leaves the sampler's own seed at its default.
  sampler.seed = o.recipe_compat ? 0 : o.seed;
  return std::make_shared<data::DistributedSampler>(data.train->size(), rank, world, sampler);
}

data::DataLoaderOptions loader_options(const RecipeOptions& o) {
  data::DataLoaderOptions loader;
  loader.batch_size = o.batch_size;
  loader.workers = o.loader_workers;
  return loader;
}

// A last batch of a single example has no batch statistics: it is left out.
data::DataLoaderOptions train_loader_options(const RecipeOptions& o, std::int64_t examples) {
  data::DataLoaderOptions loader = loader_options(o);
  loader.drop_last = examples > o.batch_size && examples % o.batch_size == 1;
  return loader;
}

dist::DdpOptions ddp_options(const RecipeOptions& o) {
  dist::DdpOptions ddp;
  if (o.bucket_cap_mb > 0) ddp.bucket_cap_mb = o.bucket_cap_mb;
  return ddp;
}

std::shared_ptr<optim::Optimizer> make_optimizer(const RecipeOptions& o, nn::Module& model) {
  auto sgd = std::make_shared<optim::SGD>(model.parameters(), optim::SGDOptions(o.learning_rate)
                                                                  .momentum(o.momentum)
                                                                  .nesterov(o.momentum > 0)
                                                                  .weight_decay(o.weight_decay));
  if (o.lookahead_k == 0) return sgd;
  optim::LookaheadOptions lookahead;
  lookahead.k = o.lookahead_k;
  lookahead.alpha = o.lookahead_alpha;
  lookahead.form =
      o.recipe_compat ? optim::LookaheadForm::kFirstSync : optim::LookaheadForm::kPaper;
  return std::make_shared<optim::Lookahead>(sgd, lookahead);
}

}  // namespace

RecipeRun::RecipeRun(RecipeOptions options, std::shared_ptr<Trainable> model, RecipeData data,
                     std::shared_ptr<dist::ProcessGroup> group, Reporter& reporter,
                     const std::atomic<bool>* stop) try
    : options_(checked(std::move(options), data, group->size())),
      model_(std::move(model)),
      group_(group),
      reporter_(reporter),
      stop_(stop),
      device_(model_->module().parameters().front().data().device()),
      agreement_(*group_),
      terms_(agreed_terms(data)),
      folder_(options_.model_path, options_.exp_name, group_->rank() == 0),
      train_sampler_(make_train_sampler(options_, data, group_->rank(), group_->size())),
      train_loader_(data.train, train_sampler_,
                    train_loader_options(options_, train_sampler_->size())),
      valid_loader_(data.valid,
                    std::make_shared<data::ExactDistributedSampler>(data.valid->size(),
                                                                    group_->rank(), group_->size()),
                    loader_options(options_)),
      valid_steps_(data::plan_epoch(data::shard_size(data.valid->size(), group_->size()),
                                    options_.batch_size, /*drop_last=*/false)
                       .steps),
      ddp_(model_, group_, ddp_options(options_)),
      optimizer_(make_optimizer(options_, model_->module())),
      rates_(*optimizer_, options_, train_loader_.epoch_plan().steps) {
} catch (const std::exception& e) {
  if (group) group->abort(e.what());
}

std::string RecipeRun::agreed_terms(const RecipeData& data) const {
  const auto require = [&](const char* what, auto value) {
    agreement_.require_same(what, static_cast<double>(value));
  };
  agreement_.require_same_text("--model", options_.model);
  require("number of training images", data.train->size());
  require("number of validation images", data.valid->size());
  require("--batch_size", options_.batch_size);
  require("--epochs", options_.epochs);
  require("--warmup_epochs", options_.warmup_epochs);
  require("--warmup_type", options_.warmup_type == WarmupType::kCosine);
  require("--warmup-unit", options_.warmup_unit == WarmupUnit::kStep);
  require("--learning_rate", options_.learning_rate);
  // In halves: a double holds only 53 bits.
  require("--seed_num (lower half)", options_.seed & 0xffffffffu);
  require("--seed_num (upper half)", options_.seed >> 32);
  require("--recipe-compat", options_.recipe_compat);
  require("--lookahead-k", options_.lookahead_k);
  require("--lookahead-alpha", options_.lookahead_alpha);
  require("--momentum", options_.momentum);
  require("--weight-decay", options_.weight_decay);
  require("--plateau-factor", options_.plateau_factor);
  require("--plateau-patience", options_.plateau_patience);
  require("--stop-patience", options_.stop_patience);
  require("--stop-vote", static_cast<int>(options_.stop_vote));
  require("--bucket-cap-mb", options_.bucket_cap_mb);
  require("--save-every", options_.save_every);
  require("--workers", options_.loader_workers);
  require("--resume", !options_.resume.empty());
  return resume_terms(options_, data.train->size(), data.valid->size());
}

RunSummary RecipeRun::run() {
  try {
    return train_epochs();
  } catch (const std::exception& e) {
    group_->abort(e.what());  // the others wait for this rank and must not do so in vain
    throw;
  }
}

RunSummary RecipeRun::train_epochs() {
  const auto start = Clock::now();
  if (options_.resume.empty()) {
    tell_if_moved(folder_.set_aside());
  } else {
    resume(options_.resume);
    if (is_finished()) return finished_before(seconds_since(start));
  }
  folder_.open(train_loader_.position().epoch);
  std::string reason = "epochs";
  for (std::int64_t epoch = train_loader_.position().epoch;
       epoch < options_.epochs && reason == "epochs"; ++epoch) {
    if (!train_epoch(epoch)) {
      save_last();
      reason = "requested";
    } else if (stopped_early_) {
      reason = "early stopping";
    }
  }
  const RunSummary summary = summarize(seconds_since(start), reason);
  folder_.write_summary(summary);
  return summary;
}

bool RecipeRun::is_finished() const {
  return stopped_early_ || train_loader_.position().epoch >= options_.epochs;
}

RunSummary RecipeRun::finished_before(double seconds) {
  RunSummary summary = summarize(seconds, "");
  if (folder_.writes()) {
    const std::optional<RunSummary> written = folder_.summary_beside(options_.resume, epochs_done_);
    if (written) summary = *written;
    // Killed between its last checkpoint and its summary, or moved on to another folder.
    if (!written || !folder_.holds(options_.resume)) {
      folder_.open(train_loader_.position().epoch);
      folder_.write_summary(summary);
    }
    reporter_.on_notice(fmt::format("the run was finished already, after {} epochs{}", epochs_done_,
                                    stopped_early_ ? " (early stopping)" : ""));
  }
  summary.stop_reason = "finished before";
  return summary;
}

void RecipeRun::tell_if_moved(const std::string& aside) {
  if (!aside.empty())
    reporter_.on_notice(fmt::format(
        "moved an earlier run's files to {} (--resume goes on with a run instead)", aside));
}

RunSummary RecipeRun::summarize(double seconds, const std::string& stop_reason) const {
  RunSummary summary;
  summary.best_valid_acc = std::max(best_accuracy_, 0.0);
  summary.last_valid_acc = last_accuracy_;
  summary.epochs = epochs_done_;
  summary.seconds = seconds;
  summary.images_per_second = ratio(static_cast<double>(images_), train_seconds_);
  summary.exposed_comm_ms_per_step = ratio(exposed_ms_, static_cast<double>(measured_steps_));
  summary.world_size = group_->size();
  summary.checkpoint = folder_.best_path();
  summary.last_checkpoint = folder_.last_path();
  summary.tensorboard = folder_.tensorboard_path();
  summary.stop_reason = stop_reason;
  return summary;
}

bool RecipeRun::stop_requested() const {
  return agreement_.decide(stop_ && stop_->load(std::memory_order_relaxed), Vote::kAny);
}

bool RecipeRun::train_epoch(std::int64_t epoch) {
  agreement_.require_same("epoch", static_cast<double>(epoch));
  const auto start = Clock::now();
  const double train_seconds_before = train_seconds_;
  const std::int64_t images_before = images_;
  const double exposed_before = exposed_ms_;
  const std::int64_t steps_before = measured_steps_;
  model_->module().train();
  train_sampler_->set_epoch(epoch);
  const std::int64_t steps = train_loader_.epoch_plan().steps;
  for (data::Batch& batch : train_loader_) {
    train_step(batch);
    Progress progress;
    progress.epoch = epoch;
    progress.epochs = options_.epochs;
    progress.step = train_loader_.position().batch;
    progress.steps = steps;
    progress.loss = epoch_totals_.mean_loss();
    progress.accuracy = epoch_totals_.accuracy();
    progress.images_per_second =
        ratio(static_cast<double>(images_ - images_before), train_seconds_ - train_seconds_before);
    reporter_.on_progress(progress);
    if (options_.save_every > 0 && step_ % options_.save_every == 0) save_last();
    if (stop_requested()) return false;
  }
  const std::optional<Totals> valid = evaluate();
  if (!valid) return false;
  EpochReport report;
  report.epoch = epoch;
  report.epochs = options_.epochs;
  report.step = step_;
  report.learning_rate = rate_used_;
  const Totals train = reduce(epoch_totals_, agreement_);
  // The published code shows its losses divided by the batch size.
  const double unit = options_.recipe_compat ? 1.0 / static_cast<double>(options_.batch_size) : 1.0;
  report.train_loss = train.mean_loss() * unit;
  report.train_accuracy = train.accuracy();
  report.valid_loss = valid->mean_loss() * unit;
  report.valid_accuracy = valid->accuracy();
  report.images_per_second =
      ratio(static_cast<double>(images_ - images_before), train_seconds_ - train_seconds_before);
  report.exposed_comm_ms_per_step =
      ratio(exposed_ms_ - exposed_before, static_cast<double>(measured_steps_ - steps_before));
  report.seconds = seconds_since(start);
  finish_epoch(report, *valid);
  return true;
}

// The copy runs beside the host, from memory that the device reads by itself.
Tensor RecipeRun::on_device(const Tensor& x) const {
  return device_.is_cpu() ? x : pin_memory(x).to(device_, /*non_blocking=*/true);
}

Variable RecipeRun::forward(const data::Batch& batch) {
  try {
    return ddp_(Variable(on_device(batch.data)));
  } catch (const Error& e) {
    // What batch norm says of a lone value does not tell which flag to turn.
    if (batch.size() != 1 || !std::string_view(e.what()).starts_with("batch_norm")) throw;
    throw Error(fmt::format("--batch_size: this model can't be trained on a batch of one image: {}",
                            e.what()));
  }
}

void RecipeRun::train_step(const data::Batch& batch) {
  const auto start = Clock::now();
  const Variable logits = forward(batch);
  const Variable loss = cross_entropy(logits, on_device(batch.target));
  optimizer_->zero_grad();
  // The published code divides the loss, already a mean, by the batch size again.
  const double weight = options_.recipe_compat ? 1.0 / static_cast<double>(batch.size()) : 1.0;
  loss.backward(full(loss.shape(), weight, {loss.dtype(), device_}));
  rate_used_ = rates_.learning_rate();
  optimizer_->step();
  rates_.after_step();
  ++step_;
  epoch_totals_.add(loss.item(), count_correct(logits.data(), batch.target), batch.size());
  train_seconds_ += seconds_since(start);
  images_ += batch.size() * group_->size();
  exposed_ms_ += ddp_.reducer().timing().exposed_ms();
  ++measured_steps_;
}

std::optional<Totals> RecipeRun::evaluate() {
  model_->module().eval();
  InferenceMode inference;
  Totals mine;
  valid_loader_.reset();
  // A rank with fewer batches goes through the votes all the same.
  for (std::int64_t step = 0; step < valid_steps_; ++step) {
    if (std::optional<data::Batch> batch = valid_loader_.next()) {
      const Variable logits = ddp_(Variable(on_device(batch->data)));
      const Variable loss = cross_entropy(logits, on_device(batch->target));
      mine.add(loss.item(), count_correct(logits.data(), batch->target), batch->size());
    }
    if (stop_requested()) return std::nullopt;
  }
  return reduce(mine, agreement_);
}

void RecipeRun::finish_epoch(EpochReport report, const Totals& valid) {
  last_accuracy_ = valid.accuracy();
  epochs_done_ = report.epoch + 1;
  epoch_totals_ = {};
  const bool wants_stop =
      rates_.after_epoch(agreement_.require_same("validation loss", valid.mean_loss()));
  stopped_early_ = agreement_.decide(wants_stop, options_.stop_vote);
  report.is_best = valid.accuracy() > best_accuracy_;
  if (report.is_best) {
    best_accuracy_ = valid.accuracy();
    save_best();
  }
  if (!warned_ && group_->rank() == 0 && !std::isfinite(report.train_loss + report.valid_loss)) {
    warned_ = true;
    log(LogLevel::kWarning,
        fmt::format("epoch {}: the loss is not finite (training {}, validation {}); a smaller "
                    "--learning_rate or a longer warm-up may help",
                    report.epoch, plain_nan(report.train_loss), plain_nan(report.valid_loss)));
  }
  // Before the checkpoint: a run that is killed between the two writes this epoch's line anew.
  folder_.add_epoch(report);
  // The next epoch's first batch is where a resumed run goes on.
  train_loader_.restore({report.epoch + 1, 0});
  save_last();
  reporter_.on_epoch(report);
}

}  // namespace lockstep::train
