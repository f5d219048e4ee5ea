#include <gtest/gtest.h>

#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/optim/adam.h"
#include "lockstep/optim/lookahead.h"
#include "lockstep/optim/schedulers.h"
#include "lockstep/optim/sgd.h"
#include "optim/toy_params.h"

namespace lockstep::optim {
namespace {

using lockstep::testing::scalar_param;

// Rate 0.1, gradient 1 at each step, weight 1 at the start.
struct SgdRun {
  Variable w = scalar_param(1, kF64);
  std::shared_ptr<SGD> inner = std::make_shared<SGD>(std::vector{w}, SGDOptions(0.1));
  Lookahead optimizer;

  explicit SgdRun(LookaheadForm form) : optimizer(inner, {5, 0.5, form}) {}
  double after(int steps) {
    for (int i = 0; i < steps; ++i) {
      w.set_grad(full({1}, 1, {.dtype = kF64}));
      optimizer.step();
    }
    return w.item();
  }
};

TEST(Lookahead, PaperFormMeetsAfterStepK) {
  SgdRun run(LookaheadForm::kPaper);
  EXPECT_NEAR(run.after(4), 0.6, 1e-15);
  EXPECT_NEAR(run.after(1), 0.75, 1e-15);  // 1 + 0.5 (0.5 - 1)
  EXPECT_NEAR(run.after(5), 0.5, 1e-15);   // 0.75 + 0.5 (0.25 - 0.75)
  EXPECT_EQ(run.optimizer.counter(), 10);
}

// The reference implementation (alphadl): slow weights start after the first step.
TEST(Lookahead, FirstSyncFormMeetsAfterStepsOneAndOnePlusK) {
  SgdRun run(LookaheadForm::kFirstSync);
  EXPECT_NEAR(run.after(1), 0.9, 1e-15);
  EXPECT_NEAR(run.after(4), 0.5, 1e-15);
  EXPECT_NEAR(run.after(1), 0.65, 1e-15);  // 0.9 + 0.5 (0.4 - 0.9)
}

TEST(Lookahead, SharesGroupsWithTheInnerOptimizer) {
  SgdRun run(LookaheadForm::kPaper);
  EXPECT_EQ(&run.optimizer.param_groups(), &run.inner->param_groups());
  StepLR scheduler(run.optimizer, {1, 0.5});
  scheduler.step();
  EXPECT_DOUBLE_EQ(run.inner->param_groups()[0].lr(), 0.05);
  // kozistr/pytorch_optimizer#237: groups must not go stale when the inner optimizer loads.
  StateDict saved = run.inner->state_dict();
  put(saved, "group.0.lr", 0.25);
  run.inner->load_state_dict(saved);
  EXPECT_EQ(run.optimizer.param_groups()[0].lr(), 0.25);
  EXPECT_NEAR(run.after(1), 0.75, 1e-15);
}

TEST(Lookahead, GroupsAddedOnEitherSideGetSlowWeights) {
  for (const bool through_inner : {false, true}) {
    SgdRun run(LookaheadForm::kPaper);
    run.after(2);
    Variable late = scalar_param(1, kF64);
    (through_inner ? static_cast<Optimizer&>(*run.inner) : run.optimizer)
        .add_param_group(OptimizerParamGroup({late}));
    for (int i = 0; i < 3; ++i) {
      late.set_grad(full({1}, 1, {.dtype = kF64}));
      run.after(1);
    }
    EXPECT_NEAR(run.w.item(), 0.75, 1e-15);
    EXPECT_NEAR(late.item(), 0.85, 1e-15);  // 1 + 0.5 (0.7 - 1)
  }
}

TEST(Lookahead, ParametersWithoutGradientStay) {
  Variable used = scalar_param(1), unused = scalar_param(0.3);
  const float before = unused.item<float>();
  Lookahead optimizer(std::make_shared<Adam>(std::vector{used, unused}), {2, 0.5, {}});
  for (int i = 0; i < 6; ++i) {
    used.set_grad(full({1}, 1));
    optimizer.step();
  }
  EXPECT_EQ(unused.item<float>(), before);
}

TEST(Lookahead, SlowWeightsAreSavedByParameterOrder) {
  SgdRun run(LookaheadForm::kPaper);
  run.after(7);
  const StateDict saved = run.optimizer.state_dict();
  EXPECT_NEAR(saved.at("lookahead.slow.0").item(), 0.75, 1e-15);
  EXPECT_EQ(get_integer(saved, "lookahead.counter"), 7);

  SgdRun other(LookaheadForm::kFirstSync);
  other.w.set_data(run.w.data().clone());
  other.optimizer.load_state_dict(saved);
  EXPECT_EQ(other.optimizer.lookahead_options().form, LookaheadForm::kPaper);
  EXPECT_EQ(other.after(3), run.after(3));
  StateDict damaged = saved;
  damaged["lookahead.slow.0"] = zeros({2}, {.dtype = kF64});
  EXPECT_THROW(other.optimizer.load_state_dict(damaged), Error);
}

TEST(Lookahead, OptionsAreChecked) {
  const auto inner = std::make_shared<SGD>(std::vector{scalar_param(1)}, SGDOptions(0.1));
  EXPECT_THROW(Lookahead(inner, {0, 0.5, {}}), Error);
  EXPECT_THROW(Lookahead(inner, {5, 1.5, {}}), Error);
  EXPECT_THROW(Lookahead(nullptr), Error);
}

}  // namespace
}  // namespace lockstep::optim
