// lockstep-train: one rank of a training run.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "command_line.h"
#include "failure_report.h"
#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
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
#include "standard_streams.h"
#include "stop_signal.h"
#include "terminal_reporter.h"

namespace lockstep::apps {
namespace {

void print_log(LogLevel level, std::string_view message) {
  if (level < LogLevel::kWarning) return;
  // Where a terminal shows the progress bar, the line is cleared first.
  std::fprintf(stderr, "%slockstep-train: %.*s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "",
               static_cast<int>(message.size()), message.data());
}

std::shared_ptr<data::ImageDataset> load(const TrainCommand& c, data::Split split) {
  return c.dataset == "digits" ? data::load_digits(split) : data::load_mnist(c.data_path, split);
}

models::ModelOptions model_options(const data::ImageDataset& images) {
  models::ModelOptions options;
  options.channels = images.images().size(1);
  options.height = images.images().size(2);
  options.width = images.images().size(3);
  options.classes = images.classes();
  return options;
}

// The virtual GPU is taken only where it is asked for.
Device device_of(const TrainCommand& c, const dist::Environment& environment) {
  if (c.device == "cpu") return kCpu;
  if (c.device == "auto" && (kHasVirtualGpu || cuda_device_count() == 0)) return kCpu;
  const int count = cuda_device_count();
  LOCKSTEP_CHECK(environment.local_rank < count,
                 "--device {}: rank {} is number {} on its host and wants CUDA device {}, but this "
                 "process can use {} of them{}",
                 c.device, environment.rank, environment.local_rank, environment.local_rank, count,
                 kHasCuda ? "" : " (this build has no CUDA)");
  return cuda_device(environment.local_rank);
}

std::shared_ptr<dist::ProcessGroup> make_group(const dist::Environment& environment,
                                               const TrainCommand& c, Device device) {
  const char* const on_host = environment.world_size > 1 ? "shm" : "local";
  dist::ProcessGroupOptions options;
  options.device = device;
  options.host_kind = on_host;
  options.timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(c.timeout_seconds * 1e9));
  const auto join_timeout = std::chrono::ceil<std::chrono::milliseconds>(options.timeout);
  return dist::make_process_group(device.is_cuda() ? "nccl" : on_host,
                                  dist::open_store(environment, join_timeout), environment.rank,
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

int train_rank(const TrainCommand& c, const dist::Environment& environment,
               const std::atomic<bool>& stop) {
  if (c.threads > 0) set_num_threads(c.threads);
  set_deterministic(c.deterministic);
  TerminalReporter terminal(environment.rank == 0, !c.quiet);
  const auto train_set = load(c, data::Split::kTrain), valid_set = load(c, data::Split::kTest);
  const Shape size = train_set->images().shape().erased(0),
              valid_size = valid_set->images().shape().erased(0);
  LOCKSTEP_CHECK(size == valid_size, "{}: training images have the size {}, validation images {}",
                 c.dataset, size, valid_size);
  const Device device = device_of(c, environment);
  auto group = make_group(environment, c, device);
  train::same_seeds(c.recipe.seed, environment.rank);
  auto model = std::make_shared<train::Trainable>(
      c.recipe.model, models::make_model(c.recipe.model, model_options(*train_set)));
  model->module().to(device);
  terminal.say(fmt::format(
      "{} ({} parameters) on {}: {} training and {} validation images; {} rank{} × {} ({}), batch "
      "{} per rank",
      c.recipe.model, model->module().parameter_count(), c.dataset, train_set->size(),
      valid_set->size(), group->size(), group->size() == 1 ? "" : "s",
      device.is_cuda() ? "a CUDA device" + std::string(kHasVirtualGpu ? ", virtual" : "")
                       : fmt::format("{} thread{}", num_threads(), num_threads() == 1 ? "" : "s"),
      group->kind(), c.recipe.batch_size));
  train::RecipeRun run(c.recipe, model, {train_set, valid_set}, group, terminal, &stop);
  const train::RunSummary summary = run.run();
  if (summary.stop_reason == "requested") {
    terminal.say(
        fmt::format("stopped on request; go on with --resume {}", summary.last_checkpoint));
    return 128 + (stop_signal() != 0 ? stop_signal() : SIGINT);  // another rank was told
  }
  say_summary(terminal, summary);
  LOCKSTEP_CHECK(!std::ferror(stdout), "standard output: it cannot be written");
  return 0;
}

}  // namespace
}  // namespace lockstep::apps

int main(int argc, char** argv) {
  using namespace lockstep;
  apps::open_standard_streams();
  // First of all: a launcher may end this process at any time.
  const std::atomic<bool>& stop = apps::install_stop_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of the write, as a full disk is
  dist::Environment environment;
  try {
    set_log_sink(apps::print_log);
    environment = dist::read_environment();
    const apps::ParsedCommand parsed = apps::parse_command_line(argc, argv);
    if (!parsed.answer.empty()) {
      if (environment.rank == 0) std::fputs(parsed.answer.c_str(), stdout);
      return 0;
    }
    return apps::train_rank(parsed.command, environment, stop);
  } catch (const std::exception& e) {
    apps::report_failure(environment, e);
    return dynamic_cast<const apps::UsageError*>(&e) ? 2 : 1;
  }
}
