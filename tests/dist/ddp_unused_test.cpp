// Parameters that a pass, or a rank, does not use.
#include <gtest/gtest.h>

#include <mutex>

#include "dist/linear_model.h"

namespace lockstep::testing {
namespace {

using dist::ProcessGroup;
using dist::run_local_ranks;

// pytorch/pytorch#43259
TEST(Ddp, AnUnusedParameterIsNamedOnEveryRankAtTheNextForward) {
  std::mutex mutex;
  std::vector<std::string> errors;
  run_local_ranks(2, [&](ProcessGroup& group) {
    ModelPtr model = model_of({"A.weight", "A.bias", "B.weight", "B.bias"});
    Ddp ddp(model, borrow(group));
    backward(ddp(std::vector<float>{1, 1}));
    try {
      ddp(std::vector<float>{1, 1});
    } catch (const Error& e) {
      std::lock_guard lock(mutex);
      errors.emplace_back(e.what());
    }
  });
  ASSERT_EQ(errors.size(), 2u);
  for (const std::string& e : errors) {
    EXPECT_NE(e.find("B.weight (2), B.bias (3)"), std::string::npos) << e;
    EXPECT_EQ(e.find("A.weight"), std::string::npos) << e;
  }
}

TEST(Ddp, UnusedParametersKeepTheirGradientWhenDetected) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"});
    Ddp ddp(model, borrow(group), {.find_unused_parameters = true});
    for (int step = 0; step < 2; ++step) {
      model->zero_grad();
      backward(ddp(std::vector<float>{2.f + 2.f * static_cast<float>(group.rank()), 0}));
      EXPECT_EQ(model->grad(0), 3);
      EXPECT_FALSE((*model)[1].grad().defined());
    }
    (*model)[1].set_grad(full({1}, 0.1));
    backward(ddp(std::vector<float>{1, 0}));
    EXPECT_EQ(model->grad(1), 0.1f);
  });
}

// pytorch/pytorch#32612
TEST(Ddp, RanksMayUseDifferentBranches) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"});
    Ddp ddp(model, borrow(group), {.find_unused_parameters = true});
    backward(ddp(group.rank() == 0 ? std::vector<float>{4, 0} : std::vector<float>{0, 6}));
    EXPECT_EQ(model->grad(0), 2);
    EXPECT_EQ(model->grad(1), 3);
  });
}

TEST(Ddp, AGradientSetOnAnUnusedParameterCounts) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"});
    Ddp ddp(model, borrow(group), {.find_unused_parameters = true});
    for (int step = 0; step < 2; ++step) {
      model->zero_grad();
      (*model)[1].set_grad(full({1}, 100));
      backward(ddp(group.rank() == 0 ? std::vector<float>{1, 0} : std::vector<float>{1, 4}));
      EXPECT_EQ(model->grad(1), 102);  // (100 + 104) / 2
    }
    (*model)[1].set_grad(full({1}, 100));
    {
      auto guard = ddp.no_sync();
      backward(ddp(group.rank() == 0 ? std::vector<float>{1, 0} : std::vector<float>{1, 4}));
    }
    ddp.sync_gradients();
    EXPECT_EQ(model->grad(1), 102);
  });
}

// There is no one order of arrival where each pass may use other parameters.
TEST(Ddp, BucketsAreNeverRebuiltWithFindUnusedParameters) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b", "c"}, 2);
    Ddp ddp(model, borrow(group), {.find_unused_parameters = true});
    for (int step = 0; step < 4; ++step) {
      model->zero_grad();
      backward(ddp(std::vector<float>{1, 2, 3}));
    }
    EXPECT_FALSE(ddp.reducer().has_rebuilt_buckets());
    EXPECT_EQ(ddp.reducer().buckets()[0].members(), (std::vector<std::size_t>{2, 1, 0}));
  });
}

}  // namespace
}  // namespace lockstep::testing
