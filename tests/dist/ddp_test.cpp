#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "dist/linear_model.h"
#include "lockstep/dist/verify_parameters.h"

namespace lockstep::testing {
namespace {

using dist::DdpOptions;
using dist::ProcessGroup;
using dist::run_local_ranks;

ModelPtr model_of(const std::vector<std::string>& names, std::int64_t width = 1, float first = 1) {
  return std::make_shared<LinearModel>(names, width, first);
}

TEST(Ddp, AveragesGradients) {
  for (const int world : {1, 2, 3, 4, 8})
    run_local_ranks(world, [&](ProcessGroup& group) {
      ModelPtr model = model_of({"a", "b"});
      Ddp ddp(model, borrow(group));
      const auto r = static_cast<float>(group.rank());
      backward(ddp(std::vector<float>{4 * (r + 1), 8}));
      EXPECT_FLOAT_EQ(model->grad(0), 2.f * static_cast<float>(world + 1));
      EXPECT_FLOAT_EQ(model->grad(1), 8);
    });
}

TEST(Ddp, EveryRankStartsWithRankZerosValuesAndBuffers) {
  run_local_ranks(3, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"}, 5, static_cast<float>(10 * group.rank()));
    model->named_buffers()[0].second.data<float>()[0] = static_cast<float>(7 + group.rank());
    Ddp ddp(model, borrow(group));
    EXPECT_EQ(model->value(0), 0);
    EXPECT_EQ(model->value(1), 1);
    EXPECT_EQ(model->named_buffers()[0].second.item(), 7);
  });
}

TEST(Ddp, GradientsAreViewsOfBuckets) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"}, 3);
    Ddp ddp(model, borrow(group));
    for (int step = 0; step < 3; ++step) {
      backward(ddp(std::vector<float>{1, 2}));
      const auto& bucket = ddp.reducer().buckets().at(0);
      EXPECT_TRUE((*model)[0].grad().shares_storage_with(bucket.flat()));
      EXPECT_TRUE((*model)[1].grad().shares_storage_with(bucket.flat()));
      model->zero_grad();
    }
  });
}

TEST(Ddp, AGradientSetElsewhereIsTakenIntoTheBucket) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a"});
    Ddp ddp(model, borrow(group));
    (*model)[0].set_grad(full({1}, 10));
    backward(ddp(std::vector<float>{static_cast<float>(group.rank() + 1)}));
    EXPECT_FLOAT_EQ(model->grad(0), 11.5f);
  });
}

TEST(Ddp, OneAllReducePerBucketAndTheBytesOfTheGradients) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b", "c", "d"}, 1000);
    Ddp ddp(model, borrow(group), {.bucket_cap_mb = 0.004, .broadcast_buffers = false});
    ASSERT_EQ(ddp.reducer().buckets().size(), 2u);
    for (int step = 0; step < 3; ++step) {
      if (step == 1) {  // the step that rebuilds has one broadcast more
        backward(ddp(std::vector<float>{1, 1, 1, 1}));
        continue;
      }
      const auto before = group.traffic();
      backward(ddp(std::vector<float>{1, 1, 1, 1}));
      const auto after = group.traffic();
      EXPECT_EQ(after.collectives - before.collectives, 2u);
      EXPECT_EQ(after.bytes - before.bytes, 4u * 1000 * 4);
    }
  });
}

TEST(Ddp, BucketsAreRebuiltOnceInTheOrderOfArrival) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b", "c"}, 2);
    Ddp ddp(model, borrow(group));
    EXPECT_EQ(ddp.reducer().buckets()[0].members(), (std::vector<std::size_t>{2, 1, 0}));
    // The sum is built up from the first term, so backward reaches the last term first.
    backward(ddp(std::vector<float>{1, 2, 3}));
    EXPECT_FALSE(ddp.reducer().has_rebuilt_buckets());
    model->zero_grad();
    backward(ddp(std::vector<float>{4, 5, 6}));
    EXPECT_TRUE(ddp.reducer().has_rebuilt_buckets());
    EXPECT_EQ(model->grad(0), 4);
    EXPECT_EQ(model->grad(1), 5);
    EXPECT_EQ(model->grad(2), 6);
  });
}

TEST(Ddp, RanksMayDisagreeOnTheOrderOfArrival) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a", "b"}, 300);
    Ddp ddp(model, borrow(group), {.bucket_cap_mb = 0.001});
    for (int step = 0; step < 4; ++step) {
      model->zero_grad();
      model->forward({1, 1});
      Variable a = product((*model)[0], Variable(full({300}, 2)));
      Variable b = product((*model)[1], Variable(full({300}, 6)));
      // Opposite orders of recording on the two ranks, through one forward of DDP each.
      backward(ddp(group.rank() == 0 ? std::vector<float>{2, 6} : std::vector<float>{4, 2}));
      EXPECT_EQ(model->grad(0), 3);
      EXPECT_EQ(model->grad(1), 4);
    }
  });
}

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

TEST(Ddp, ACommHookReplacesTheAllReduce) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"w"});
    int calls = 0;
    DdpOptions options;
    options.comm_hook = [&](ProcessGroup& g, const dist::GradBucket& bucket) {
      ++calls;
      EXPECT_TRUE(bucket.is_last());
      for (std::int64_t i = 0; i < bucket.flat.numel(); ++i) bucket.flat.data<float>()[i] *= 10;
      return dist::all_reduce_hook(g, bucket);
    };
    Ddp ddp(model, borrow(group), options);
    backward(ddp(std::vector<float>{3}));
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(model->grad(0), 30);
  });
}

TEST(Ddp, CommunicationStartsBeforeBackwardEnds) {
  run_local_ranks(2, [](ProcessGroup& group) {
    ModelPtr model = model_of({"early", "late"}, 1 << 16);
    Ddp ddp(model, borrow(group), {.bucket_cap_mb = 0.1});
    ASSERT_EQ(ddp.reducer().buckets().size(), 2u);
    std::atomic<bool> first_is_on_its_way = false;
    for (int step = 0; step < 2; ++step) {
      model->zero_grad();
      Variable y = ddp(std::vector<float>{1, 1});
      // Runs in the midst of backward, after "late" has its gradient and before "early" has.
      const auto hook = (*model)[0].register_hook([&](const Tensor&) {
        first_is_on_its_way = ddp.reducer().buckets()[0].timing.launch > 0;
        return Tensor();
      });
      backward(y);
      (*model)[0].remove_hook(hook);
      EXPECT_TRUE(first_is_on_its_way);
      const dist::StepTiming& timing = ddp.reducer().timing();
      ASSERT_EQ(timing.buckets.size(), 2u);
      EXPECT_LT(timing.buckets[0].launch, timing.last_gradient);
      for (const auto& b : timing.buckets) {
        EXPECT_LE(b.ready, b.launch);
        EXPECT_LE(b.launch, b.start);
        EXPECT_LE(b.start, b.end);
        EXPECT_LE(b.end, timing.finished);
        EXPECT_EQ(b.bytes, 4u << 16);
      }
      EXPECT_GE(timing.exposed_ms(), 0);
      EXPECT_GE(timing.overlap(), 0);
      EXPECT_LE(timing.overlap(), 1);
    }
  });
}

TEST(Ddp, BucketCapsDoNotChangeTheBits) {
  std::vector<Tensor> results;
  std::mutex mutex;
  for (const double cap : {0.0001, 0.001, 25.0}) {
    run_local_ranks(3, [&](ProcessGroup& group) {
      ModelPtr model = model_of({"a", "b", "c", "d", "e"}, 37);
      Ddp ddp(model, borrow(group), {.bucket_cap_mb = cap});
      for (int step = 0; step < 4; ++step) {
        model->zero_grad();
        const float r = static_cast<float>(group.rank()) + 0.1f * static_cast<float>(step);
        backward(ddp(std::vector<float>{0.1f + r, 0.7f * r + 0.3f, 1.3f, 0.01f + r, 3 - r}));
        model->step(0.1f);
      }
      dist::verify_same_values({{"a", (*model)[0]}, {"e", (*model)[4]}}, group);
      if (group.rank() != 0) return;
      std::lock_guard lock(mutex);
      Tensor all = empty({5, 37});
      for (int i = 0; i < 5; ++i) copy_elements(all.select(0, i), (*model)[i].data());
      results.push_back(all);
    });
  }
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].nbytes()), 0);
  EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), results[0].nbytes()), 0);
}

TEST(Ddp, RefusesABadCap) {
  run_local_ranks(1, [](ProcessGroup& group) {
    ModelPtr model = model_of({"a"});
    EXPECT_THROW(Ddp(model, borrow(group), {.bucket_cap_mb = 0}), Error);
  });
}

}  // namespace
}  // namespace lockstep::testing
