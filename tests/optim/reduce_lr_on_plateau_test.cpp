#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/optim/reduce_lr_on_plateau.h"
#include "lockstep/optim/sgd.h"
#include "optim/toy_params.h"

namespace lockstep::optim {
namespace {

using lockstep::testing::scalar_param;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The rate after each metric, from 0.1.
std::vector<double> rates(const PlateauOptions& options, const std::vector<double>& metrics) {
  SGD optimizer({scalar_param(0)}, SGDOptions(0.1));
  ReduceLROnPlateau scheduler(optimizer, options);
  std::vector<double> result;
  for (double metric : metrics) {
    const double before = optimizer.param_groups()[0].lr();
    const bool cut = scheduler.step(metric);
    result.push_back(optimizer.param_groups()[0].lr());
    EXPECT_EQ(cut, result.back() < before);
  }
  return result;
}

void expect_rates(const PlateauOptions& options, const std::vector<double>& metrics,
                  const std::vector<double>& expected) {
  const std::vector<double> actual = rates(options, metrics);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_DOUBLE_EQ(actual[i], expected[i]) << "epoch " << i;
}

// pytorch/pytorch#30873
TEST(Plateau, SpikeThenSlowDescent) {
  expect_rates({.patience = 2}, {1, 5, 4, 3, 2}, {.1, .1, .1, .01, .01});
}

TEST(Plateau, NaNIsNotBetter) {
  expect_rates({.patience = 2}, {1, kNaN, kNaN, kNaN}, {.1, .1, .1, .01});
}

// davisking/dlib#2209
TEST(Plateau, InfCutsAndNeverPoisonsTheBest) {
  SGD optimizer({scalar_param(0)}, SGDOptions(0.1));
  ReduceLROnPlateau scheduler(optimizer, {.factor = 0.5, .patience = 2});
  const double metrics[] = {1, kInf, kInf, kInf, kNaN, 0.5};
  const double lrs[] = {.1, .1, .1, .05, .05, .05};
  for (int i = 0; i < 6; ++i) {
    scheduler.step(metrics[i]);
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].lr(), lrs[i]) << i;
    EXPECT_EQ(scheduler.state().best, i < 5 ? 1 : 0.5) << i;
  }
}

// pytorch/pytorch#106339
TEST(Plateau, RateNeverRises) {
  expect_rates({.patience = 0, .min_lr = {0.5}}, {1, 1, 1, 1}, {.1, .1, .1, .1});
  EXPECT_EQ(plateau_lr(0.1, 0.5, {}), 0.1);
  EXPECT_DOUBLE_EQ(plateau_lr(0.1, 0.03, {}), 0.03);
  EXPECT_EQ(plateau_lr(1e-9, 0, {}), 1e-9);  // a change of no more than eps
  EXPECT_EQ(plateau_lr(0, 0, {}), 0);
}

// libtorch's scheduler gets these two wrong.
TEST(Plateau, MaxModeWithNegativeMetrics) {
  const PlateauOptions max{
      .mode = MetricMode::kMax, .threshold = 0.1, .threshold_mode = ThresholdMode::kAbs};
  EXPECT_TRUE(plateau_better(-5, plateau_start(max).best, max));
  EXPECT_TRUE(plateau_better(-4.8, -5, max));
  EXPECT_FALSE(plateau_better(-4.95, -5, max));
  EXPECT_FALSE(plateau_better(kNaN, plateau_start(max).best, max));
}

TEST(Plateau, FourComparisons) {
  const auto better = [](MetricMode mode, ThresholdMode threshold, double metric) {
    return plateau_better(metric, 10,
                          {.mode = mode, .threshold = 0.1, .threshold_mode = threshold});
  };
  EXPECT_TRUE(better(MetricMode::kMin, ThresholdMode::kRel, 8.9));
  EXPECT_FALSE(better(MetricMode::kMin, ThresholdMode::kRel, 9.0));
  EXPECT_TRUE(better(MetricMode::kMin, ThresholdMode::kAbs, 9.8));
  EXPECT_FALSE(better(MetricMode::kMin, ThresholdMode::kAbs, 9.9));
  EXPECT_TRUE(better(MetricMode::kMax, ThresholdMode::kRel, 11.1));
  EXPECT_FALSE(better(MetricMode::kMax, ThresholdMode::kRel, 11.0));
  EXPECT_TRUE(better(MetricMode::kMax, ThresholdMode::kAbs, 10.2));
  EXPECT_FALSE(better(MetricMode::kMax, ThresholdMode::kAbs, 10.1));
  // A threshold of 1 or more must not make the first metric NaN * inf.
  EXPECT_TRUE(plateau_better(5, kInf, {.threshold = 1}));
}

TEST(Plateau, CooldownCountsNoBadEpochs) {
  // Cut at epoch 1; epochs 2 and 3 cool down; bad epochs 4 and 5 with patience 1.
  expect_rates({.factor = 0.5, .patience = 0, .cooldown = 2}, {1, 1, 1, 1, 1, 1},
               {.1, .05, .05, .05, .025, .025});
}

TEST(Plateau, MinLrPerGroup) {
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector{scalar_param(0)}, SGDOptions(1));
  groups.emplace_back(std::vector{scalar_param(0)}, SGDOptions(1));
  SGD optimizer(groups, SGDOptions(1));
  ReduceLROnPlateau scheduler(optimizer, {.patience = 0, .min_lr = {0.5, 0.01}});
  for (int i = 0; i < 4; ++i) scheduler.step(1);
  EXPECT_EQ(optimizer.param_groups()[0].lr(), 0.5);
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[1].lr(), 0.01);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.min_lr = {1, 2, 3}}), Error);
}

TEST(Plateau, SaveAndLoad) {
  const PlateauOptions options{.factor = 0.5, .patience = 1, .cooldown = 2};
  SGD a({scalar_param(0)}, SGDOptions(0.1)), b({scalar_param(0)}, SGDOptions(0.7));
  ReduceLROnPlateau first(a, options), second(b, options);
  const double metrics[] = {1, .5, .6, .7, .8, .4, .5, .5, .5, .5, .5, .5, .5, .5};
  for (int save_at = 0; save_at < 14; ++save_at) {
    first.step(metrics[save_at]);
    b.load_state_dict(a.state_dict());
    second.load_state_dict(first.state_dict());
    ReduceLROnPlateau straight(a, options);
    straight.load_state_dict(first.state_dict());
    const double lr = a.param_groups()[0].lr();
    for (int i = save_at + 1; i < 14; ++i) {
      EXPECT_EQ(straight.step(metrics[i]), second.step(metrics[i]));
      EXPECT_EQ(a.param_groups()[0].lr(), b.param_groups()[0].lr());
    }
    a.param_groups()[0].options().set_lr(lr);
  }
}

TEST(Plateau, OptionsAreChecked) {
  SGD optimizer({scalar_param(0)}, SGDOptions(0.1));
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.factor = 1}), Error);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.factor = -0.1}), Error);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.patience = -1}), Error);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.threshold = kNaN}), Error);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.min_lr = {}}), Error);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.min_lr = {-1}}), Error);
}

}  // namespace
}  // namespace lockstep::optim
