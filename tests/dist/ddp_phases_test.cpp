// Forward, backward and evaluation in orders that are right and wrong; buffers on the way.
#include <gtest/gtest.h>

#include "dist/linear_model.h"

namespace lockstep::testing {
namespace {

using dist::ProcessGroup;
using dist::run_local_ranks;

TEST(Ddp, BackwardWithoutAForwardThroughDdpIsAnErrorWithPhaseAndName) {
  run_local_ranks(1, [](ProcessGroup& group) {
    ModelPtr model = model_of({"lonely"});
    Ddp ddp(model, borrow(group));
    try {
      backward(model->forward({1}));
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("lonely"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("idle"), std::string::npos) << e.what();
    }
  });
}

TEST(Ddp, BuffersFollowRankZeroWithEveryTrainingStepAndEvaluationIsLocal) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"w"});
    Ddp ddp(model, borrow(group));
    model->named_buffers()[0].second.data<float>()[0] = static_cast<float>(5 + group.rank());
    backward(ddp(std::vector<float>{1}));
    model->training = false;
    if (group.rank() == 1) {  // alone, without hanging
      NoGradGuard no_grad;
      ddp(std::vector<float>{1});
      EXPECT_EQ(model->named_buffers()[0].second.item(), 5);
    }
  });
}

TEST(Ddp, BuffersAreThereWhenBackwardReturns) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"w"});
    auto ddp = std::make_unique<Ddp>(model, borrow(group));
    model->named_buffers()[0].second.data<float>()[0] = static_cast<float>(5 + group.rank());
    backward((*ddp)(std::vector<float>{1}));
    EXPECT_EQ(model->named_buffers()[0].second.item(), 5);
    ddp.reset();
    EXPECT_EQ(model->named_buffers()[0].second.item(), 5);
  });
}

// An unfinished reduction must not be lost under a local forward that follows.
TEST(Ddp, AnUnfinishedReductionIsAnErrorForALocalForwardToo) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"});
    Ddp ddp(model, borrow(group));
    backward(ddp(std::vector<float>{1}));
    EXPECT_EQ(ddp.reducer().phase(), dist::Phase::kReducing);
    auto guard = ddp.no_sync();
    EXPECT_THROW(ddp(std::vector<float>{1, 1}), Error);
  });
}

TEST(Ddp, AnExceptionInBackwardIsNamedOrAloneForgotten) {
  for (const int world : {1, 2})
    run_local_ranks(world, [&](ProcessGroup& group) {
      ModelPtr model = model_of({"a", "b"});
      Ddp ddp(model, borrow(group), {.broadcast_buffers = false});
      const auto hook = (*model)[0].register_hook(
          [](const Tensor&) -> Tensor { throw std::runtime_error("mine"); });
      EXPECT_THROW(backward(ddp(std::vector<float>{1, 1})), std::runtime_error);
      (*model)[0].remove_hook(hook);
      model->zero_grad();
      if (world == 1) {
        backward(ddp(std::vector<float>{3, 4}));
        EXPECT_EQ(model->grad(0), 3);
        EXPECT_EQ(model->grad(1), 4);
        return;
      }
      try {
        ddp(std::vector<float>{1, 1});
        ADD_FAILURE() << "no error";
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("exception"), std::string::npos) << e.what();
      }
    });
}

TEST(Ddp, TrainingInEvaluationModeIsNamed) {
  run_local_ranks(1, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a"});
    Ddp ddp(model, borrow(group));
    model->training = false;
    try {
      backward(ddp(std::vector<float>{1}));
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("training mode"), std::string::npos) << e.what();
    }
  });
}

}  // namespace
}  // namespace lockstep::testing
