// lockstep-train: one rank of a training run.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "command_line.h"
#include "lockstep/core/log.h"
#include "lockstep/core/threads.h"
#include "lockstep/data/digits.h"
#include "lockstep/data/mnist.h"
#include "lockstep/dist/bootstrap.h"
#include "lockstep/dist/environment.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/models/make_model.h"
#include "lockstep/train/recipe_run.h"
#include "lockstep/train/same_seeds.h"
#include "stop_signal.h"
#include "terminal_reporter.h"

namespace lockstep::apps {
namespace {

void print_log(LogLevel level, std::string_view message) {
  if (level < LogLevel::kWarning) return;
  std::fprintf(stderr, "lockstep-train: %.*s\n", static_cast<int>(message.size()), message.data());
}

train::RecipeData load_data(const TrainCommand& c) {
  if (c.dataset == "digits")
    return {data::load_digits(data::Split::kTrain), data::load_digits(data::Split::kTest)};
  return {data::load_mnist(c.data_path, data::Split::kTrain),
          data::load_mnist(c.data_path, data::Split::kTest)};
}

std::shared_ptr<dist::ProcessGroup> make_group(const dist::Environment& environment,
                                               const TrainCommand& c) {
  dist::ProcessGroupOptions options;
  options.timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(c.timeout_seconds * 1e9));
  return dist::make_process_group(environment.world_size > 1 ? "shm" : "local",
                                  dist::open_store(environment), environment.rank,
                                  environment.world_size, options);
}

void say_summary(TerminalReporter& terminal, const train::RunSummary& s) {
  terminal.say(fmt::format("best validation accuracy  {:.2f} %  (last {:.2f} %)",
                           100 * s.best_valid_acc, 100 * s.last_valid_acc));
  terminal.say(fmt::format(
      "trained                   {} epochs in {:.1f} s, {:.0f} images/s on {} rank{}", s.epochs,
      s.seconds, s.images_per_second, s.world_size, s.world_size == 1 ? "" : "s"));
  terminal.say(
      fmt::format("exposed communication     {:.2f} ms per step", s.exposed_comm_ms_per_step));
  terminal.say(fmt::format("checkpoint                {}", s.checkpoint));
  terminal.say(fmt::format("TensorBoard folder        {}", s.tensorboard));
}

int train_rank(const TrainCommand& c, const dist::Environment& environment) {
  const std::atomic<bool>& stop = install_stop_signals();
  train::check_options(c.recipe);
  if (c.threads > 0) set_num_threads(c.threads);
  set_deterministic(c.deterministic);
  TerminalReporter terminal(environment.rank == 0, !c.quiet);
  const train::RecipeData data = load_data(c);
  auto group = make_group(environment, c);
  train::same_seeds(c.recipe.seed, environment.rank);
  auto model =
      std::make_shared<train::Trainable>(c.recipe.model, models::make_model(c.recipe.model));
  terminal.say(fmt::format(
      "{} ({} parameters) on {}: {} training and {} validation images; {} rank{} × {} thread{} "
      "({}), batch {} per rank",
      c.recipe.model, model->module().parameter_count(), c.dataset, data.train->size(),
      data.valid->size(), group->size(), group->size() == 1 ? "" : "s", num_threads(),
      num_threads() == 1 ? "" : "s", group->kind(), c.recipe.batch_size));
  train::RecipeRun run(c.recipe, model, data, group, terminal, &stop);
  const train::RunSummary summary = run.run();
  if (summary.stop_reason == "requested") {
    terminal.say(
        fmt::format("stopped on request; go on with --resume {}", summary.last_checkpoint));
    return 128 + stop_signal();
  }
  say_summary(terminal, summary);
  return 0;
}

}  // namespace
}  // namespace lockstep::apps

int main(int argc, char** argv) {
  using namespace lockstep;
  const apps::ParsedCommand parsed = apps::parse_command_line(argc, argv);
  if (parsed.ends) return parsed.exit_code;
  int rank = 0;
  try {
    set_log_sink(apps::print_log);
    const dist::Environment environment = dist::read_environment();
    rank = environment.rank;
    return apps::train_rank(parsed.command, environment);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lockstep-train: rank %d: %s\n", rank, e.what());
    return 1;
  }
}
