// Gradients averaged bucket by bucket, with the same bits whatever the buckets.
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
