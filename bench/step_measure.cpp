#include "bench/step_measure.h"

#include <cmath>
#include <optional>

#include "bench/machine.h"
#include "lockstep/autograd/ops/cross_entropy.h"
#include "lockstep/core/error.h"
#include "lockstep/core/generator.h"
#include "lockstep/core/random.h"
#include "lockstep/core/threads.h"
#include "lockstep/dist/ddp.h"
#include "lockstep/kernels/matmul.h"
#include "lockstep/models/make_model.h"
#include "lockstep/optim/lookahead.h"
#include "lockstep/optim/sgd.h"

namespace lockstep::bench {
namespace {

using Model = std::shared_ptr<models::Classifier>;

// Starts what the first call would otherwise pay for.
double start_library() {
  const double begin = monotonic_seconds();
  parallel_for(num_threads(), 1, [](std::int64_t, std::int64_t) {});
  kernels::matmul_forward(ones({64, 64}), ones({64, 64}));
  return monotonic_seconds() - begin;
}

std::shared_ptr<optim::Optimizer> make_optimizer(const Model& model, bool lookahead) {
  std::shared_ptr<optim::Optimizer> sgd = std::make_shared<optim::SGD>(
      model->parameters(), optim::SGDOptions(0.01).momentum(0.9).nesterov(true));
  if (!lookahead) return sgd;
  return std::make_shared<optim::Lookahead>(sgd, optim::LookaheadOptions{.k = 10, .alpha = 0.5});
}

class Training {
 public:
  Training(const StepOptions& options, std::uint64_t seed,
           const std::shared_ptr<dist::ProcessGroup>& group) {
    manual_seed(seed);
    model_ = models::make_model(options.model);
    model_->to(options.dtype);
    if (group) ddp_.emplace(model_, group);
    optimizer_ = make_optimizer(model_, options.lookahead);
    Generator data(seed + 1000003 * static_cast<std::uint64_t>(group ? group->rank() : 0));
    images_ = Variable(rand({options.batch, 1, 28, 28}, data, {.dtype = options.dtype}));
    labels_ = randint(0, 10, {options.batch}, data);
  }

  double step() {
    const Variable loss =
        cross_entropy(ddp_ ? (*ddp_)(images_) : model_->forward(images_), labels_);
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
    return loss.item();
  }

 private:
  Model model_;
  std::optional<dist::DistributedDataParallel<Model>> ddp_;
  std::shared_ptr<optim::Optimizer> optimizer_;
  Variable images_;
  Tensor labels_;
};

void largest_of_ranks(const std::shared_ptr<dist::ProcessGroup>& group,
                      std::vector<double>& values) {
  if (group) group->all_reduce(dist::span_of(values), dist::ReduceOp::kMax)->wait();
}

}  // namespace

StepRun measure_steps(const StepOptions& options, std::shared_ptr<dist::ProcessGroup> group) {
  set_num_threads(options.threads);
  StepRun run;
  run.options = options;
  run.ranks = group ? group->size() : 1;
  run.init_seconds = start_library();
  for (const std::uint64_t seed : options.seeds) {
    Training training(options, seed, group);
    StepResult result;
    result.seed = seed;
    std::vector<double> seconds;
    const int steps = options.warm_up + options.steps;
    for (int i = 0; i < steps; ++i) {
      const double begin = monotonic_seconds();
      result.last_loss = training.step();
      seconds.push_back(monotonic_seconds() - begin);
      if (i == 0) result.first_loss = result.last_loss;
      if (run.first_step_at == 0) {
        run.first_step_at = monotonic_seconds();
        run.start_to_first_step = seconds_since_process_start();
      }
    }
    if (!std::isfinite(result.last_loss)) throw Error("the loss is no longer finite");
    largest_of_ranks(group, seconds);
    result.step = summarize(seconds, options.warm_up);
    result.images_per_second = static_cast<double>(options.batch * run.ranks) / result.step.median;
    result.samples_seen = options.batch * run.ranks * steps;
    run.results.push_back(std::move(result));
  }
  std::vector<double> peak = {static_cast<double>(peak_resident_bytes())};
  largest_of_ranks(group, peak);
  run.peak_resident = static_cast<std::int64_t>(peak[0]);
  return run;
}

}  // namespace lockstep::bench
