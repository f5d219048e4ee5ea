// The main job: trains a classifier by data parallelism with the recipe's tricks.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/data/data_loader.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/dist/ddp.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/train/metrics.h"
#include "lockstep/train/rate_control.h"
#include "lockstep/train/recipe_options.h"
#include "lockstep/train/reporter.h"
#include "lockstep/train/run_folder.h"
#include "lockstep/train/trainable.h"

namespace lockstep::train {

struct RecipeData {
  std::shared_ptr<const data::Dataset> train;
  std::shared_ptr<const data::Dataset> valid;
};

// Collective from construction to destruction: every rank makes one with the same options.
class RecipeRun {
 public:
  // The model is trained on the device that it is on. Throws Error for options or data that can't
  // be trained on, and what DDP throws for models that differ. `stop` (may be null) may be set at
  // any time, e.g. by a signal handler.
  RecipeRun(RecipeOptions options, std::shared_ptr<Trainable> model, RecipeData data,
            std::shared_ptr<dist::ProcessGroup> group, Reporter& reporter,
            const std::atomic<bool>* stop = nullptr);

  // Trains until the last epoch, early stopping or a stop request (agreed by all ranks, after the
  // step under way), saving checkpoints on rank 0. Where one rank throws, all others do soon.
  RunSummary run();

 private:
  RunSummary train_epochs();
  // False: a stop was requested in the midst of it.
  bool train_epoch(std::int64_t epoch);
  void train_step(const data::Batch& batch);
  // Over all ranks; nothing if a stop was requested.
  std::optional<Totals> evaluate();
  void finish_epoch(EpochReport report, const Totals& valid);
  bool stop_requested() const;
  // resume_terms(), once every option that all ranks must share is known to be the same.
  std::string agreed_terms(const RecipeData& data) const;
  Variable forward(const data::Batch& batch);
  Tensor on_device(const Tensor& x) const;
  bool is_finished() const;
  // Ends a run that was resumed after its end: its files stay as they are.
  RunSummary finished_before(double seconds);
  void tell_if_moved(const std::string& aside);
  RunSummary summarize(double seconds, const std::string& stop_reason) const;

  // Checkpoints (recipe_checkpoint.cpp). Saving is collective.
  void save_last();
  void save_best();
  void resume(const std::string& path);
  void restore(const TensorMap& state);

  RecipeOptions options_;
  std::shared_ptr<Trainable> model_;
  std::shared_ptr<dist::ProcessGroup> group_;
  Reporter& reporter_;
  const std::atomic<bool>* stop_;
  const Device device_;  // the model's
  Agreement agreement_;
  std::string terms_;  // resume_terms()
  RunFolder folder_;

  std::shared_ptr<data::DistributedSampler> train_sampler_;
  data::DataLoader train_loader_;
  data::DataLoader valid_loader_;
  std::int64_t valid_steps_;  // of the rank that has most
  dist::DistributedDataParallel<std::shared_ptr<Trainable>> ddp_;
  std::shared_ptr<optim::Optimizer> optimizer_;
  RateControl rates_;

  // What a checkpoint holds beside the parts above.
  std::int64_t step_ = 0;
  Totals epoch_totals_;  // of this rank, in the epoch under way
  double best_accuracy_ = -1;
  double last_accuracy_ = 0;
  std::int64_t epochs_done_ = 0;
  bool stopped_early_ = false;
  double rate_used_ = 0;  // by the last step

  // Measured in this process.
  double train_seconds_ = 0;
  std::int64_t images_ = 0;
  double exposed_ms_ = 0;
  std::int64_t measured_steps_ = 0;
  bool warned_ = false;
};

}  // namespace lockstep::train
