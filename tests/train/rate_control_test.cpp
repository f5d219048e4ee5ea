#include "lockstep/train/rate_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "lockstep/optim/sgd.h"

namespace lockstep::train {
namespace {

// An optimizer of one parameter with the recipe's rates.
struct Rates {
  explicit Rates(const RecipeOptions& options, std::int64_t steps_per_epoch = 1)
      : steps(steps_per_epoch),
        sgd({Variable(zeros({1}), true)}, optim::SGDOptions(options.learning_rate)),
        control(sgd, options, steps_per_epoch) {}

  // The rate that each step of the next epoch uses.
  std::vector<double> epoch(double valid_loss) {
    std::vector<double> used;
    for (std::int64_t s = 0; s < steps; ++s) {
      used.push_back(control.learning_rate());
      control.after_step();
    }
    wants_stop = control.after_epoch(Agreement().rank0(valid_loss));
    return used;
  }
  std::vector<double> falling(int epochs) {
    std::vector<double> used;
    for (int e = 0; e < epochs; ++e)
      for (const double rate : epoch(1.0 / (1 + e))) used.push_back(rate);
    return used;
  }

  std::int64_t steps;
  optim::SGD sgd;
  RateControl control;
  bool wants_stop = false;
};

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-12) << "step " << i;
}

RecipeOptions base_one(std::int64_t warmup_epochs) {
  RecipeOptions options;
  options.learning_rate = 1;
  options.warmup_epochs = warmup_epochs;
  options.epochs = 10;
  return options;
}

TEST(RateControl, PublishedWarmupTrainsItsFirstEpochAtRateZero) {
  RecipeOptions options = base_one(3);
  options.recipe_compat = true;
  expect_near(Rates(options).falling(7), {0, 1. / 3, 2. / 3, 1, 1, 1, 1});
  // Its cosine is never reached.
  options.warmup_type = WarmupType::kCosine;
  expect_near(Rates(options).falling(7), {0, 1. / 3, 2. / 3, 1, 1, 1, 1});
  options.warmup_epochs = 0;
  expect_near(Rates(options).falling(3), {1, 1, 1});
}

TEST(RateControl, WarmupByEpochsLearnsFromTheFirst) {
  RecipeOptions options = base_one(3);
  options.warmup_unit = WarmupUnit::kEpoch;
  expect_near(Rates(options, 2).falling(5), {1. / 3, 1. / 3, 2. / 3, 2. / 3, 1, 1, 1, 1, 1, 1});
}

TEST(RateControl, WarmupByStepsRisesWithEachStep) {
  expect_near(Rates(base_one(2), 3).falling(3),
              {1. / 6, 2. / 6, 3. / 6, 4. / 6, 5. / 6, 1, 1, 1, 1});
  expect_near(Rates(base_one(0), 2).falling(2), {1, 1, 1, 1});
}

TEST(RateControl, CosineFallsToZeroAfterTheWarmup) {
  const auto cosine = [](double t) { return 0.5 * (1 + std::cos(std::numbers::pi * t)); };
  RecipeOptions options = base_one(1);
  options.epochs = 5;
  options.warmup_type = WarmupType::kCosine;
  options.warmup_unit = WarmupUnit::kEpoch;
  expect_near(Rates(options).falling(5), {1, 1, cosine(0.25), cosine(0.5), cosine(0.75)});
  options.warmup_unit = WarmupUnit::kStep;
  expect_near(Rates(options, 2).falling(3),
              {0.5, 1, 1, cosine(1. / 8), cosine(2. / 8), cosine(3. / 8)});
}

// LambdaLR forgets a cut made during the warm-up; here it stays unless the published way is asked.
TEST(RateControl, APlateauCutDuringTheWarmupSurvives) {
  RecipeOptions options = base_one(4);
  options.warmup_unit = WarmupUnit::kEpoch;
  options.plateau_patience = 1;
  const std::vector<double> losses{1, 1, 1, 0.5, 0.4, 0.3};
  const auto run = [&](RecipeOptions o) {
    Rates rates(o);
    std::vector<double> used;
    for (const double loss : losses) used.push_back(rates.epoch(loss)[0]);
    return used;
  };
  // The second bad epoch is the third one: the cut is in force from the fourth on.
  expect_near(run(options), {0.25, 0.5, 0.75, 0.1, 0.1, 0.1});
  options.recipe_compat = true;
  expect_near(run(options), {0, 0.25, 0.5, 0.075, 1, 1});
}

// davisking/dlib#2209: losses that are not finite cut the rate and end the run, no more.
TEST(RateControl, NonFiniteLossesCountAsNoImprovement) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  RecipeOptions options = base_one(0);
  options.learning_rate = 0.1;
  options.plateau_factor = 0.5;
  options.plateau_patience = 2;
  options.stop_patience = 4;
  Rates rates(options);
  std::vector<double> after;
  std::vector<bool> stops;
  for (const double loss : {1.0, inf, inf, inf, nan, 0.5}) {
    rates.epoch(loss);
    after.push_back(rates.control.learning_rate());
    stops.push_back(rates.wants_stop);
  }
  expect_near(after, {0.1, 0.1, 0.1, 0.05, 0.05, 0.05});
  EXPECT_EQ(stops, (std::vector<bool>{false, false, false, false, true, true}));
}

// A flat or a NaN loss never stops the published code.
TEST(RateControl, EarlyStoppingInBothForms) {
  for (const bool compat : {false, true}) {
    for (const double loss : {1.0, std::nan("")}) {
      RecipeOptions options = base_one(0);
      options.stop_patience = 2;
      options.recipe_compat = compat;
      Rates rates(options);
      rates.epoch(1);
      for (int e = 0; e < 5; ++e) rates.epoch(loss);
      EXPECT_EQ(rates.wants_stop, !compat) << loss;
    }
  }
}

TEST(RateControl, StateGoesOnInTheMidstOfAnEpoch) {
  for (const bool compat : {false, true}) {
    for (const WarmupUnit unit : {WarmupUnit::kStep, WarmupUnit::kEpoch}) {
      RecipeOptions options = base_one(3);
      options.warmup_unit = unit;
      options.warmup_type = WarmupType::kCosine;
      options.plateau_patience = 0;
      options.recipe_compat = compat;
      Rates whole(options, 3), first(options, 3);
      for (Rates* rates : {&whole, &first}) {
        rates->epoch(1);
        rates->epoch(2);  // a cut
        rates->control.after_step();
      }
      Rates second(options, 3);
      second.control.load_state_dict(first.control.state_dict());
      for (int e = 0; e < 6; ++e) {
        const double loss = e % 2 ? 3 : 0.5 - 0.1 * e;
        EXPECT_EQ(whole.epoch(loss), second.epoch(loss)) << "epoch " << e;
        EXPECT_EQ(whole.wants_stop, second.wants_stop);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::train
