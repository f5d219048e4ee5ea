#include "lockstep/train/recipe_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/nn/nn.h"
#include "lockstep/train/checkpoint.h"
#include "lockstep/train/same_seeds.h"
#include "support/message.h"
#include "support/temp_folder.h"

namespace lockstep::train {
namespace {

using lockstep::testing::message_of;
using lockstep::testing::read_bytes;
using lockstep::testing::TempFolder;

// Images of one pixel row whose class is where the brightest pixel is.
std::shared_ptr<data::Dataset> dots(std::int64_t n) {
  Tensor images = zeros({n, 1, 1, 4}), labels = empty({n}, {.dtype = kI64});
  for (std::int64_t i = 0; i < n; ++i) {
    images.data<float>()[4 * i + i % 4] = 1 + 0.01f * static_cast<float>(i);
    labels.data<std::int64_t>()[i] = i % 4;
  }
  return std::make_shared<data::TensorDataset>(images, labels);
}

// Calls `on_batch` with the number of batches asked for so far, before each one.
class WatchedDataset : public data::Dataset {
 public:
  WatchedDataset(std::shared_ptr<data::Dataset> inner, std::function<void(int)> on_batch)
      : inner_(std::move(inner)), on_batch_(std::move(on_batch)) {}
  std::int64_t size() const override { return inner_->size(); }
  data::Example get(std::int64_t index) const override { return inner_->get(index); }
  data::Batch get_batch(std::span<const std::int64_t> indices) const override {
    on_batch_(++batches_);
    return inner_->get_batch(indices);
  }

 private:
  std::shared_ptr<data::Dataset> inner_;
  std::function<void(int)> on_batch_;
  mutable std::atomic<int> batches_ = 0;
};

std::shared_ptr<Trainable> small_model(bool dropout) {
  auto net = std::make_shared<nn::SequentialImpl>();
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(4, 16));
  net->push_back(nn::BatchNorm1d(16));
  net->push_back(nn::ReLU());
  if (dropout) net->push_back(nn::Dropout(0.5));
  net->push_back(nn::Linear(16, 4));
  return std::make_shared<Trainable>("dots", net);
}

struct Case {
  RecipeOptions options;
  std::int64_t examples = 34;
  bool dropout = true;
  int ranks = 1;
  std::int64_t stop_at_step = 0;              // of the run; 0: never
  int stop_at_valid_batch = 0;                // on rank 0; 0: never
  std::vector<std::int64_t> steps_of_epochs;  // out: optimizer's steps at each epoch's end
};

RunSummary run(Case& c) {
  c.options.exp_name = "run";
  c.options.loader_workers = 0;
  RunSummary summary;
  std::mutex mutex;
  dist::run_local_ranks(c.ranks, [&](dist::ProcessGroup& group) {
    struct Watcher : Reporter {
      void on_progress(const Progress&) override {
        if (++steps == stop_at) stop = true;
      }
      void on_epoch(const EpochReport& report) override { epochs.push_back(report.step); }
      std::int64_t steps = 0, stop_at = 0;
      std::vector<std::int64_t> epochs;
      std::atomic<bool> stop = false;
    } watcher;
    const bool zero = group.rank() == 0;
    // Only one rank is asked to stop; all have to.
    watcher.stop_at = group.rank() == group.size() - 1 ? c.stop_at_step : 0;
    RecipeData data{dots(c.examples), std::make_shared<WatchedDataset>(dots(9), [&](int batch) {
                      if (zero && batch == c.stop_at_valid_batch) watcher.stop = true;
                    })};
    same_seeds(c.options.seed, group.rank());
    const std::shared_ptr<dist::ProcessGroup> shared(&group, [](dist::ProcessGroup*) {});
    RecipeRun job(c.options, small_model(c.dropout), data, shared, watcher, &watcher.stop);
    const RunSummary mine = job.run();
    const std::lock_guard lock(mutex);
    if (zero) {
      summary = mine;
      c.steps_of_epochs = watcher.epochs;
    }
  });
  return summary;
}

Case four_epochs(const TempFolder& folder, int ranks) {
  Case c;
  c.ranks = ranks;
  c.options.model_path = folder.path();
  c.options.batch_size = 4;
  c.options.epochs = 4;
  c.options.warmup_epochs = 1;
  c.options.lookahead_k = 3;
  return c;
}

class Resumed : public ::testing::TestWithParam<std::tuple<int, int>> {};

// Stopped after any step, in training or validation, with dropout's draws, batch statistics and
// Lookahead under way.
TEST_P(Resumed, EndsInTheSameBytes) {
  const auto [ranks, place] = GetParam();
  const TempFolder whole_folder, broken_folder;
  Case whole = four_epochs(whole_folder, ranks);
  EXPECT_EQ(run(whole).stop_reason, "epochs");
  Case broken = four_epochs(broken_folder, ranks);
  if (place > 0) broken.stop_at_step = place;
  if (place < 0) broken.stop_at_valid_batch = -place;
  const RunSummary stopped = run(broken);
  EXPECT_EQ(stopped.stop_reason, "requested");
  EXPECT_LT(stopped.epochs, 4);
  broken = four_epochs(broken_folder, ranks);
  broken.options.resume = stopped.last_checkpoint;
  EXPECT_EQ(run(broken).stop_reason, "epochs");
  for (const char* file : {"run/last.safetensors", "run/best.safetensors"})
    EXPECT_TRUE(read_bytes(whole_folder / file) == read_bytes(broken_folder / file)) << file;
}

// Positive: a step (9 or 5 an epoch); negative: a batch of the validation (3 or 2 an epoch).
INSTANTIATE_TEST_SUITE_P(Places, Resumed,
                         ::testing::Combine(::testing::Values(1, 2),
                                            ::testing::Values(1, 4, 5, 7, 9, 10, 13, -1, -2, -4)));

TEST(RecipeRun, DropoutDiffersAmongRunsOnlyByTheSeed) {
  const TempFolder a, b, c;
  Case first = four_epochs(a, 2), second = four_epochs(b, 2), other = four_epochs(c, 2);
  other.options.seed = 7;
  run(first);
  run(second);
  run(other);
  EXPECT_TRUE(read_bytes(a / "run/last.safetensors") == read_bytes(b / "run/last.safetensors"));
  EXPECT_FALSE(read_bytes(a / "run/last.safetensors") == read_bytes(c / "run/last.safetensors"));
}

// Batch statistics of one example per rank do not exist.
TEST(RecipeRun, ALastBatchOfOneExampleIsLeftOut) {
  for (const auto& [examples, steps] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{9, 2}, {10, 3}, {8, 2}, {5, 1}}) {
    for (const int ranks : {1, 2}) {
      const TempFolder folder;
      Case c = four_epochs(folder, ranks);
      c.examples = examples * ranks;
      c.options.epochs = 2;
      run(c);
      EXPECT_EQ(c.steps_of_epochs, (std::vector<std::int64_t>{steps, 2 * steps})) << examples;
    }
  }
}

TEST(RecipeRun, EarlyStoppingIsAgreedAndSurvivesResume) {
  const TempFolder folder;
  Case c = four_epochs(folder, 2);
  c.options.learning_rate = 1e-12;  // nothing gets better
  c.options.warmup_epochs = 0;
  c.options.epochs = 50;
  c.options.stop_patience = 2;
  const RunSummary summary = run(c);
  EXPECT_EQ(summary.stop_reason, "early stopping");
  EXPECT_LT(summary.epochs, 50);
  c.options.resume = summary.last_checkpoint;
  const RunSummary again = run(c);
  EXPECT_EQ(again.stop_reason, "finished before");
  EXPECT_EQ(again.epochs, summary.epochs);
  EXPECT_EQ(again.images_per_second, summary.images_per_second);
}

// A model that norms over the batch alone can't be trained on one example; others can.
TEST(RecipeRun, ABatchOfOneIsNamedWhereTheModelNeedsMore) {
  const TempFolder folder;
  Case c = four_epochs(folder, 1);
  c.options.batch_size = 1;
  const std::string what = message_of<Error>([&] { run(c); });
  EXPECT_HOLDS(what, "--batch_size");
  EXPECT_HOLDS(what, "one image");
}

// A rank that fails, in construction or in a step, leaves none waiting.
TEST(RecipeRun, AFailureOfOneRankReachesAll) {
  const TempFolder folder;
  testing::write_bytes(folder / "file", "in the way");
  Case c = four_epochs(folder, 3);
  c.options.model_path = folder / "file";
  EXPECT_HOLDS(message_of<Error>([&] { run(c); }), folder / "file");

  std::atomic<int> failed = 0;
  dist::run_local_ranks(3, [&](dist::ProcessGroup& group) {
    Case one = four_epochs(folder, 3);
    const bool bad = group.rank() == 1;
    RecipeData data{std::make_shared<WatchedDataset>(dots(30),
                                                     [bad](int batch) {
                                                       if (bad && batch == 3)
                                                         throw Error("batch 3 is unreadable");
                                                     }),
                    dots(9)};
    one.options.loader_workers = 0;
    same_seeds(1, group.rank());
    Reporter silent;
    const std::shared_ptr<dist::ProcessGroup> shared(&group, [](dist::ProcessGroup*) {});
    RecipeRun job(one.options, small_model(true), data, shared, silent);
    const std::string what = message_of<Error>([&] { job.run(); });
    EXPECT_HOLDS(what, "batch 3 is unreadable");
    if (!bad) {
      EXPECT_HOLDS(what, "rank 1");
    }
    ++failed;
  });
  EXPECT_EQ(failed, 3);
}

}  // namespace
}  // namespace lockstep::train
