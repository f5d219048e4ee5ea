#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/optim/early_stopping.h"

namespace lockstep::optim {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// The epoch (from 0) at which it stops, or -1.
int stops_at(const EarlyStoppingOptions& options, const std::vector<double>& metrics) {
  EarlyStopping stopping(options);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    if (stopping.step(metrics[i])) return static_cast<int>(i);
  return -1;
}

TEST(EarlyStopping, StopsAfterPatienceEpochsWithoutImprovement) {
  EXPECT_EQ(stops_at({.patience = 2}, {3, 2, 1, 1.5, 1.2, 0}), 4);
  EXPECT_EQ(stops_at({.patience = 2}, {3, 2, 2.5, 1, 1.5, 0.5, 0.6}), -1);
  EXPECT_EQ(stops_at({.patience = 1}, {1, 2}), 1);
  EXPECT_EQ(stops_at({.patience = 2, .mode = MetricMode::kMax}, {0.1, 0.5, 0.4, 0.45}), 3);
  EXPECT_EQ(stops_at({.patience = 2, .mode = MetricMode::kMax}, {0.1, 0.2, 0.3, 0.4}), -1);
}

TEST(EarlyStopping, FlatAndNaNAreNoImprovement) {
  EXPECT_EQ(stops_at({.patience = 3}, std::vector<double>(10, 1.0)), 3);
  EXPECT_EQ(stops_at({.patience = 3}, {1, kNaN, kNaN, kNaN}), 3);
  EXPECT_EQ(stops_at({.patience = 3}, std::vector<double>(10, kNaN)), 2);
  EXPECT_EQ(stops_at({.patience = 2}, {1, kNaN, 2}), 2);  // the best outlives the NaN
  EXPECT_EQ(stops_at({.patience = 2}, {kNaN, 5, 4, 3}), -1);
  EXPECT_EQ(stops_at({.patience = 2}, {kInf, 5, kInf, kInf}), 3);
}

TEST(EarlyStopping, DeltaIsTheLeastImprovement) {
  EXPECT_EQ(stops_at({.patience = 2, .delta = 0.5}, {4, 3.75, 3.5}), 2);  // 3.5 is no more than .5
  EXPECT_EQ(stops_at({.patience = 2, .delta = 0.5}, {4, 3.75, 3.25}), -1);
  EXPECT_EQ(stops_at({.patience = 2, .delta = 0.5, .mode = MetricMode::kMax}, {1, 1.5, 1.25}), 2);
}

// What the published recipe does, shown by running its code.
TEST(EarlyStopping, RecipeFormKeepsItsQuirks) {
  EXPECT_EQ(stops_at({.patience = 2, .recipe_compat = true}, std::vector<double>(50, 1.0)), -1);
  std::vector<double> nan_after_one(50, kNaN);
  nan_after_one[0] = 1;
  EXPECT_EQ(stops_at({.patience = 2, .recipe_compat = true}, nan_after_one), -1);
  // The first finite value after a NaN is the new best, though 7 is worse than 1.
  EXPECT_EQ(stops_at({.patience = 3, .recipe_compat = true}, {1, 2, kNaN, 7, 8, 8, 6, 9, 9, 9}), 9);
  EXPECT_EQ(stops_at({.patience = 2, .recipe_compat = true}, {3, 2, 1, 1.5, 1.2, 0}), 4);
}

TEST(EarlyStopping, StaysStoppedAndIsSaved) {
  EarlyStopping stopping({.patience = 2});
  EXPECT_FALSE(stopping.step(1));
  EXPECT_FALSE(stopping.step(2));
  EarlyStopping resumed({.patience = 2});
  resumed.load_state_dict(stopping.state_dict());
  EXPECT_EQ(resumed.state().best, 1);
  EXPECT_TRUE(resumed.step(2));
  EXPECT_TRUE(resumed.step(0));
  EarlyStopping again({.patience = 2});
  again.load_state_dict(resumed.state_dict());
  EXPECT_TRUE(again.should_stop());
  EarlyStopping fresh;
  fresh.load_state_dict(EarlyStopping().state_dict());
  EXPECT_FALSE(fresh.state().best.has_value());
}

TEST(EarlyStopping, OptionsAreChecked) {
  EXPECT_THROW(EarlyStopping({.patience = 0}), Error);
  EXPECT_THROW(EarlyStopping({.delta = -1}), Error);
  EXPECT_THROW(EarlyStopping({.delta = kNaN}), Error);
}

}  // namespace
}  // namespace lockstep::optim
