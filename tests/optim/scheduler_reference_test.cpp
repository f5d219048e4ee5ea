// A hundred steps of every scheduler against PyTorch's (tests/reference/make_schedulers.py).
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "lockstep/core/safetensors.h"
#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/reduce_lr_on_plateau.h"
#include "lockstep/optim/schedulers.h"
#include "lockstep/optim/sgd.h"
#include "optim/toy_params.h"
#include "support/expect_close.h"

namespace lockstep::optim {
namespace {

using lockstep::testing::scalar_param;

constexpr std::int64_t kSteps = 100;

// Two groups with the base rates of the reference.
SGD two_groups() {
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector{scalar_param(0)}, SGDOptions(0.1).momentum(0.9));
  groups.emplace_back(std::vector{scalar_param(0)}, SGDOptions(0.02).momentum(0.9));
  return SGD(groups, SGDOptions(0.1).momentum(0.9));
}

const TensorMap& reference() {
  static const TensorMap tensors =
      load_safetensors(LOCKSTEP_SOURCE_DIR "/tests/reference/values/schedulers.safetensors");
  return tensors;
}

struct Case {
  const char* name;
  std::function<std::vector<std::unique_ptr<LRScheduler>>(Optimizer&)> make;
};

template <class Scheduler, class... Args>
Case one(const char* name, Args... args) {
  return {name, [=](Optimizer& optimizer) {
            std::vector<std::unique_ptr<LRScheduler>> schedulers;
            schedulers.push_back(std::make_unique<Scheduler>(optimizer, args...));
            return schedulers;
          }};
}

std::vector<Case> cases() {
  return {
      one<StepLR>("step", StepLROptions{7, 0.6}),
      one<MultiStepLR>("multi_step", MultiStepLROptions{{5, 20, 20, 61}, 0.3}),
      one<ExponentialLR>("exponential", ExponentialLROptions{0.95}),
      one<LinearLR>("linear"),
      one<LinearLR>("linear_20", LinearLROptions{0.1, 0.8, 20}),
      one<ConstantLR>("constant", ConstantLROptions{0.25, 10}),
      one<PolynomialLR>("polynomial", PolynomialLROptions{50, 2}),
      one<CosineAnnealingLR>("cosine", CosineAnnealingLROptions{30, 0.001}),
      one<CosineAnnealingLR>("cosine_99", CosineAnnealingLROptions{99}),
      one<CosineAnnealingWarmRestarts>("restarts",
                                       CosineAnnealingWarmRestartsOptions{12, 1, 0.002}),
      one<CosineAnnealingWarmRestarts>("restarts_mult", CosineAnnealingWarmRestartsOptions{5, 2}),
      one<OneCycleLR>("one_cycle", std::vector{0.5, 0.2}, OneCycleOptions{.total_steps = 100}),
      one<OneCycleLR>("one_cycle_linear", 0.3,
                      OneCycleOptions{.total_steps = 100,
                                      .pct_start = 0.45,
                                      .anneal_strategy = Anneal::kLinear,
                                      .div_factor = 10,
                                      .final_div_factor = 100}),
      one<OneCycleLR>("one_cycle_three", 0.3,
                      OneCycleOptions{.total_steps = 100, .three_phase = true}),
      one<LambdaLR>("lambda", std::vector<LambdaLR::Lambda>{
                                  [](std::int64_t e) { return std::pow(0.98, e); },
                                  [](std::int64_t e) { return 1.0 / static_cast<double>(1 + e); }}),
      one<SequentialLR>("sequential",
                        std::vector{make_schedule(LinearLROptions{0.1, 1, 10}),
                                    make_schedule(CosineAnnealingLROptions{60, 0.001}),
                                    make_schedule(ExponentialLROptions{0.9})},
                        std::vector<std::int64_t>{10, 70}),
      {"chained",
       [](Optimizer& optimizer) {
         std::vector<std::unique_ptr<LRScheduler>> schedulers;
         schedulers.push_back(
             std::make_unique<ExponentialLR>(optimizer, ExponentialLROptions{0.97}));
         schedulers.push_back(std::make_unique<StepLR>(optimizer, StepLROptions{9, 0.5}));
         return schedulers;
       }},
  };
}

class SchedulerReference : public ::testing::TestWithParam<Case> {};

TEST_P(SchedulerReference, HundredStepsAsPyTorch) {
  const Case& c = GetParam();
  SGD optimizer = two_groups();
  const auto schedulers = c.make(optimizer);
  const auto momentum = reference().find(std::string(c.name) + ".momentum");
  const Tensor& expected = reference().at(c.name);
  Tensor actual = empty({kSteps, 2}, {.dtype = kF64});
  for (std::int64_t step = 0; step < kSteps; ++step) {
    if (step > 0)
      for (const auto& scheduler : schedulers) scheduler->step();
    for (std::int64_t g = 0; g < 2; ++g)
      actual.data<double>()[2 * step + g] =
          optimizer.param_groups()[static_cast<std::size_t>(g)].lr();
    if (momentum == reference().end()) continue;
    ASSERT_NEAR(*optimizer.param_groups()[0].options().cycled_momentum(),
                testing::element(momentum->second, step), 1e-12)
        << "step " << step;
  }
  EXPECT_CLOSE(actual, expected, 1e-7, 1e-12);
}

// Saved after 37 steps and loaded into new objects: the same bits from there on, whether the
// optimizer's state is loaded before or after the scheduler's.
TEST_P(SchedulerReference, ResumesWithTheSameBits) {
  const Case& c = GetParam();
  for (const bool optimizer_first : {false, true}) {
    SGD straight = two_groups(), resumed = two_groups();
    const auto a = c.make(straight), b = c.make(resumed);
    const auto step_all = [](const auto& schedulers, int count) {
      for (int i = 0; i < count; ++i)
        for (const auto& scheduler : schedulers) scheduler->step();
    };
    step_all(a, 37);
    straight.param_groups()[1].options().set_lr(straight.param_groups()[1].lr() * 0.1);
    if (optimizer_first) resumed.load_state_dict(straight.state_dict());
    for (std::size_t i = 0; i < a.size(); ++i) b[i]->load_state_dict(a[i]->state_dict());
    if (!optimizer_first) resumed.load_state_dict(straight.state_dict());
    for (int step = 0; step < 50; ++step) {
      for (std::size_t g = 0; g < 2; ++g) {
        OptimizerOptions& x = straight.param_groups()[g].options();
        OptimizerOptions& y = resumed.param_groups()[g].options();
        ASSERT_EQ(x.get_lr(), y.get_lr()) << "step " << step << " group " << g;
        ASSERT_EQ(*x.cycled_momentum(), *y.cycled_momentum());
      }
      step_all(a, 1);
      step_all(b, 1);
    }
    EXPECT_EQ(b[0]->last_epoch(), 87);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SchedulerReference, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CosineAnnealingWarmRestarts, FractionsOfAnEpochAsPyTorch) {
  SGD optimizer = two_groups();
  CosineAnnealingWarmRestarts scheduler(optimizer, {5, 2});
  const Tensor& expected = reference().at("restarts_fraction");
  for (std::int64_t i = 0; i < kSteps; ++i) {
    scheduler.step_to(static_cast<double>(i) * 0.37);
    for (std::int64_t g = 0; g < 2; ++g)
      EXPECT_NEAR(optimizer.param_groups()[static_cast<std::size_t>(g)].lr(),
                  testing::element(expected, 2 * i + g), 1e-12);
  }
}

struct PlateauCase {
  const char* name;
  PlateauOptions options;
  double sign = 1;
};

TEST(ReduceLROnPlateau, HundredEpochsAsPyTorch) {
  const PlateauCase cases[] = {
      {"plateau", {.patience = 3}},
      {"plateau_abs",
       {.factor = 0.5,
        .patience = 2,
        .threshold = 0.02,
        .threshold_mode = ThresholdMode::kAbs,
        .cooldown = 4}},
      {"plateau_max", {.mode = MetricMode::kMax, .factor = 0.3, .patience = 2, .threshold = 0.01}},
      {"plateau_max_abs",
       {.mode = MetricMode::kMax,
        .factor = 0.7,
        .patience = 1,
        .threshold = 0.03,
        .threshold_mode = ThresholdMode::kAbs,
        .cooldown = 2,
        .min_lr = {0.01, 0.005}},
       -1},
      {"plateau_eps", {.factor = 0.9, .patience = 0, .eps = 1e-3}},
  };
  for (const PlateauCase& c : cases) {
    SGD optimizer = two_groups();
    ReduceLROnPlateau scheduler(optimizer, c.options);
    Tensor actual = empty({kSteps, 2}, {.dtype = kF64});
    int cuts = 0;
    for (std::int64_t epoch = 0; epoch < kSteps; ++epoch) {
      cuts += scheduler.step(c.sign * testing::element(reference().at("metrics"), epoch));
      for (std::int64_t g = 0; g < 2; ++g)
        actual.data<double>()[2 * epoch + g] =
            optimizer.param_groups()[static_cast<std::size_t>(g)].lr();
    }
    EXPECT_CLOSE(actual, reference().at(c.name), 1e-12, 0) << c.name;
    EXPECT_GT(cuts, 2) << c.name;
  }
}

}  // namespace
}  // namespace lockstep::optim
