// Gradients that add up over several backward passes before ranks exchange them.
#include <gtest/gtest.h>

#include "dist/linear_model.h"

namespace lockstep::testing {
namespace {

using dist::ProcessGroup;
using dist::run_local_ranks;

// huggingface/accelerate#1726: syncing only on the last of four micro-batches.
TEST(Ddp, NoSyncAccumulatesAndTheLastMicroBatchSynchronises) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"w"});
    Ddp ddp(model, borrow(group), {.broadcast_buffers = false});
    const std::vector<float> mine =
        group.rank() == 0 ? std::vector<float>{1, 2, 3, 4} : std::vector<float>{5, 6, 7, 8};
    const auto before = group.traffic().collectives;
    for (int i = 0; i < 4; ++i) {
      if (i < 3) {
        auto guard = ddp.no_sync();
        backward(ddp(std::vector<float>{mine[i]}));
      } else {
        backward(ddp(std::vector<float>{mine[i]}));
      }
    }
    EXPECT_EQ(group.traffic().collectives - before, ddp.reducer().buckets().size());
    EXPECT_EQ(model->grad(0), 18);
  });
}

TEST(Ddp, NoSyncAroundBackwardAloneOrForwardAloneStaysLocal) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"w"});
    Ddp ddp(model, borrow(group), {.broadcast_buffers = false});
    const auto before = group.traffic().collectives;
    Variable y = ddp(std::vector<float>{3});
    {
      auto guard = ddp.no_sync();
      backward(y);
    }
    {
      auto guard = ddp.no_sync();
      y = ddp(std::vector<float>{5});
    }
    backward(y);
    EXPECT_EQ(group.traffic().collectives, before);
    EXPECT_EQ(model->grad(0), 8);
  });
}

// pytorch/pytorch#53443
TEST(Ddp, AccumulatedGradientsCanBeSynchronisedWithoutOneMoreBatch) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"w", "unused"});
    Ddp ddp(model, borrow(group));
    for (int i = 1; i <= 4; ++i) {
      auto guard = ddp.no_sync();
      backward(ddp(std::vector<float>{static_cast<float>(4 * group.rank() + i)}));
    }
    ddp.sync_gradients();
    EXPECT_EQ(model->grad(0), 18);
    EXPECT_FALSE((*model)[1].grad().defined());
    ddp.sync_gradients();  // nothing new: nothing happens
    EXPECT_EQ(model->grad(0), 18);
  });
}

// pytorch/pytorch#69031
TEST(Ddp, ParametersUsedOnlyInEarlierMicroStepsAreReducedToo) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"});
    Ddp ddp(model, borrow(group), {.find_unused_parameters = true});
    const float r = static_cast<float>(group.rank());
    {
      auto guard = ddp.no_sync();
      backward(ddp(std::vector<float>{1 + 2 * r, 0}));
    }
    backward(ddp(std::vector<float>{0, 2 + 2 * r}));
    EXPECT_EQ(model->grad(0), 2);
    EXPECT_EQ(model->grad(1), 3);
  });
}

TEST(Ddp, TwoBackwardsOfOneForwardFinishTogether) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"});
    Ddp ddp(model, borrow(group));
    ddp(std::vector<float>{1, 1});
    const float r = static_cast<float>(group.rank());
    backward(product((*model)[0], leaf(2 + r, false)));
    EXPECT_EQ(ddp.reducer().phase(), dist::Phase::kReducing);
    backward(product((*model)[1], leaf(4 + r, false)));
    EXPECT_EQ(ddp.reducer().phase(), dist::Phase::kIdle);
    EXPECT_EQ(model->grad(0), 2.5f);
    EXPECT_EQ(model->grad(1), 4.5f);
  });
}

}  // namespace
}  // namespace lockstep::testing
