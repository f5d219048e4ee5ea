#include <gtest/gtest.h>

#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/optim/lookahead.h"
#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/reduce_lr_on_plateau.h"
#include "lockstep/optim/schedulers.h"
#include "lockstep/optim/sgd.h"
#include "optim/toy_params.h"

namespace lockstep::optim {
namespace {

using lockstep::testing::scalar_param;

SGD sgd(double lr) { return SGD({scalar_param(0)}, SGDOptions(lr)); }
double lr_of(Optimizer& optimizer, std::size_t group = 0) {
  return optimizer.param_groups()[group].lr();
}

// pytorch/pytorch#50577: warm-up over 4 steps, then cosine to 0 over 12 in all.
TEST(WarmupLR, LinearThenCosine) {
  const double expected[] = {.025,    .05,     .075, .1,      .1,      .096194,
                             .085355, .069134, .05,  .030866, .014645, .003806};
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector{scalar_param(0)});
  groups.emplace_back(std::vector{scalar_param(0)}, SGDOptions(0.2));
  SGD optimizer(groups, SGDOptions(0.1)), resumed(groups, SGDOptions(0.7));
  const WarmupLROptions options{.warmup_steps = 4, .cosine_total = 12};
  WarmupLR scheduler(optimizer, options), second(resumed, options);
  for (int step = 0; step < 12; ++step) {
    EXPECT_NEAR(lr_of(optimizer, 0), expected[step], 5e-7) << step;
    EXPECT_NEAR(lr_of(optimizer, 1), 2 * expected[step], 1e-6) << step;
    if (step == 6) second.load_state_dict(scheduler.state_dict());
    if (step >= 6) {
      EXPECT_EQ(lr_of(resumed, 0), lr_of(optimizer, 0)) << step;
      EXPECT_EQ(lr_of(resumed, 1), lr_of(optimizer, 1)) << step;
      second.step();
    }
    scheduler.step();
  }
  EXPECT_EQ(lr_of(optimizer), 0);
  scheduler.step();
  EXPECT_EQ(lr_of(optimizer), 0);
}

TEST(WarmupLR, StartsAtTheFirstStepsShareOrAtZero) {
  SGD share = sgd(1), zero = sgd(1);
  WarmupLR a(share, {.warmup_steps = 3}), b(zero, {.warmup_steps = 3, .from_zero = true});
  const double from_share[] = {1. / 3, 2. / 3, 1, 1, 1, 1, 1};
  const double from_zero[] = {0, 1. / 3, 2. / 3, 1, 1, 1, 1};
  for (int epoch = 0; epoch < 7; ++epoch) {
    EXPECT_DOUBLE_EQ(lr_of(share), from_share[epoch]);
    EXPECT_DOUBLE_EQ(lr_of(zero), from_zero[epoch]);
    a.step();
    b.step();
  }
  EXPECT_EQ(lr_at(0, 0.5, WarmupLROptions{}), 0.5);
}

// The recipe's lambda gives rate 0 in the whole first epoch.
TEST(LambdaLR, ConstructorSetsStepZero) {
  SGD optimizer = sgd(0.1);
  LambdaLR scheduler(optimizer, [](std::int64_t e) { return static_cast<double>(e) / 2; });
  EXPECT_EQ(lr_of(optimizer), 0);
  EXPECT_EQ(optimizer.param_groups()[0].initial_lr(), 0.1);
  scheduler.step();
  EXPECT_EQ(lr_of(optimizer), 0.05);
  EXPECT_EQ(scheduler.get_last_lr()[0], 0.05);
  EXPECT_EQ(scheduler.last_epoch(), 1);
}

// A plateau cut during warm-up: it survives the next warm-up step, or is overwritten as in PyTorch.
TEST(LambdaLR, PlateauCutIsKeptOrOverwritten) {
  for (const bool keep : {true, false}) {
    SGD optimizer = sgd(0.1);
    LambdaLR warmup(
        optimizer, [](std::int64_t e) { return e <= 4 ? e / 4.0 : 1.0; },
        keep ? OnForeignChange::kKeep : OnForeignChange::kOverwrite);
    ReduceLROnPlateau plateau(optimizer, {.factor = 0.1, .patience = 0});
    EXPECT_FALSE(plateau.step(1));
    warmup.step();
    warmup.step();
    EXPECT_DOUBLE_EQ(lr_of(optimizer), 0.05);
    EXPECT_TRUE(plateau.step(2));
    EXPECT_DOUBLE_EQ(lr_of(optimizer), 0.005);
    warmup.step();
    EXPECT_DOUBLE_EQ(lr_of(optimizer), keep ? 0.0075 : 0.075);
    EXPECT_TRUE(plateau.step(2));
    warmup.step();
    warmup.step();
    EXPECT_DOUBLE_EQ(lr_of(optimizer), keep ? 0.001 : 0.1);
  }
}

// A schedule that passes through 0 comes back; what was set at 0 tells nothing about a ratio.
TEST(LRScheduler, PassesThroughRateZero) {
  SGD optimizer = sgd(0.1);
  CosineAnnealingLR scheduler(optimizer, {2});
  scheduler.step();
  scheduler.step();
  EXPECT_NEAR(lr_of(optimizer), 0, 1e-18);
  scheduler.step();
  scheduler.step();
  EXPECT_NEAR(lr_of(optimizer), 0.1, 1e-12);
}

TEST(LRScheduler, MayPointAtLookahead) {
  const auto inner = std::make_shared<SGD>(std::vector{scalar_param(0)}, SGDOptions(0.1));
  Lookahead optimizer(inner);
  ExponentialLR outside(optimizer, {0.5}), inside(*inner, {0.5});
  outside.step();
  inside.step();
  EXPECT_DOUBLE_EQ(lr_of(*inner), 0.025);
  ReduceLROnPlateau plateau(optimizer, {.patience = 0});
  plateau.step(1);
  plateau.step(1);
  EXPECT_DOUBLE_EQ(lr_of(*inner), 0.0025);
}

TEST(LRScheduler, FollowsGroupsThatAreAddedLater) {
  SGD optimizer = sgd(0.1);
  StepLR scheduler(optimizer, {1, 0.5});
  optimizer.add_param_group(OptimizerParamGroup({scalar_param(0)}, SGDOptions(0.8)));
  scheduler.step();
  EXPECT_DOUBLE_EQ(lr_of(optimizer, 0), 0.05);
  EXPECT_DOUBLE_EQ(lr_of(optimizer, 1), 0.4);
}

TEST(LRScheduler, RefusesWrongOptionsAndStates) {
  SGD optimizer = sgd(0.1);
  EXPECT_THROW(StepLR(optimizer, {0, 0.1}), Error);
  EXPECT_THROW(LinearLR(optimizer, {0, 1, 5}), Error);
  EXPECT_THROW(CosineAnnealingLR(optimizer, {0}), Error);
  EXPECT_THROW(CosineAnnealingWarmRestarts(optimizer, {5, 0}), Error);
  EXPECT_THROW(WarmupLR(optimizer, {.warmup_steps = 4, .cosine_total = 4}), Error);
  EXPECT_THROW(SequentialLR(optimizer, {make_schedule(StepLROptions{})}, {5}), Error);
  const Schedule constant = make_schedule(StepLROptions{});
  EXPECT_THROW(SequentialLR(optimizer, {constant, constant, constant}, {5, 5}), Error);
  EXPECT_THROW(OneCycleLR(optimizer, 1, {.total_steps = 0}), Error);
  EXPECT_THROW(LambdaLR(optimizer, std::vector<LambdaLR::Lambda>(2)), Error);
  EXPECT_EQ(lr_of(optimizer), 0.1);

  StepLR scheduler(optimizer, {3, 0.5});
  scheduler.step();
  StateDict saved = scheduler.state_dict();
  put(saved, "base_lrs", std::vector{0.1, 0.2});
  EXPECT_THROW(scheduler.load_state_dict(saved), Error);
  EXPECT_THROW(scheduler.load_state_dict({}), Error);
  EXPECT_THROW(scheduler.step_to(-1), Error);
  EXPECT_EQ(scheduler.last_epoch(), 1);
}

TEST(OneCycleLR, RefusesStepsBeyondTheCycle) {
  SGD optimizer({scalar_param(0)}, SGDOptions(1).momentum(0.9));
  OneCycleLR scheduler(optimizer, 1, {.total_steps = 3});
  for (int i = 0; i < 3; ++i) scheduler.step();
  EXPECT_THROW(scheduler.step(), Error);
  EXPECT_EQ(scheduler.last_epoch(), 3);
}

// Far steps are exact: the argument of the cosine is reduced first.
TEST(CosineAnnealing, FarStepsAreExact) {
  const CosineAnnealingLROptions options{7, 0.001};
  EXPECT_EQ(lr_at(std::int64_t{14} * 1'000'000'000 + 3, 0.1, options),
            lr_at(std::int64_t{3}, 0.1, options));
}

}  // namespace
}  // namespace lockstep::optim
