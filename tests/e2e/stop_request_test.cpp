// The application's signal handler stays its own, and what it wishes is done after the step under
// way. (Handlers that broke blocking calls: marian-nmt/marian-dev#660.)
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>

#include "lockstep/data/digits.h"
#include "lockstep/dist/local_store.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/models/make_model.h"
#include "lockstep/train/recipe_run.h"
#include "lockstep/train/same_seeds.h"
#include "support/temp_folder.h"

namespace lockstep::testing {
namespace {

std::atomic<bool> stop_flag = false;
std::atomic<int> handled = 0;

void on_interrupt(int) {
  ++handled;
  stop_flag = true;
}

// Interrupts the process in the midst of training.
class Interrupter : public train::Reporter {
 public:
  void on_progress(const train::Progress& progress) override {
    last_step = progress.step;
    if (progress.step == kAt) ::raise(SIGINT);
  }
  static constexpr std::int64_t kAt = 3;
  std::int64_t last_step = 0;
};

TEST(StopRequest, TheApplicationsHandlerRunsAndTrainingEndsWithinAStep) {
  struct sigaction action {
  }, before{}, after{};
  action.sa_handler = on_interrupt;
  ASSERT_EQ(::sigaction(SIGINT, &action, &before), 0);
  const TempFolder folder;
  train::RecipeOptions options;
  options.exp_name = "stopped";
  options.model_path = folder.path();
  options.model = "small_net";
  options.batch_size = 16;
  options.epochs = 50;
  options.warmup_epochs = 1;
  train::same_seeds(options.seed, 0);
  auto model = std::make_shared<train::Trainable>(options.model, models::make_model(options.model));
  auto group = dist::make_process_group("local", std::make_shared<dist::LocalStore>(), 0, 1);
  Interrupter reporter;
  const auto digits = data::load_digits(data::Split::kTest);
  train::RecipeRun run(options, model, {digits, digits}, group, reporter, &stop_flag);
  const train::RunSummary summary = run.run();
  EXPECT_EQ(summary.stop_reason, "requested");
  EXPECT_EQ(handled, 1);
  EXPECT_LE(reporter.last_step, Interrupter::kAt + 1);
  ASSERT_EQ(::sigaction(SIGINT, &before, &after), 0);
  EXPECT_EQ(after.sa_handler, on_interrupt) << "the library has taken the signal";
}

}  // namespace
}  // namespace lockstep::testing
