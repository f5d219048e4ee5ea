// Works in flight: order of waits, times, calls from signals' shadow, the end of a group.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/time.h>

#include <numeric>
#include <string>
#include <vector>

#include "dist/run_ranks.h"

namespace lockstep::dist {
namespace {

using testing::is_error;
using testing::message_of;
using testing::run_ranks;
using testing::try_ranks;

class Async : public ::testing::TestWithParam<std::string> {};

// Two buckets in flight, waited for in reverse (flashlight/wav2letter#309).
TEST_P(Async, WorksMayBeWaitedForInReverse) {
  run_ranks(GetParam(), 4, [](ProcessGroup& group) {
    std::vector<float> a(1000, static_cast<float>(group.rank() + 1)), b(70000, a[0]);
    auto first = group.all_reduce(span_of(a), ReduceOp::kSum, {1, 0});
    auto second = group.all_reduce(span_of(b), ReduceOp::kSum, {1, 1});
    second->wait();
    first->wait();
    first->wait();
    for (float v : a) ASSERT_EQ(v, 10.0f);
    for (float v : b) ASSERT_EQ(v, 10.0f);
    EXPECT_EQ(first->description(), "all_reduce sum of 1000 f32 (step 1, bucket 0)");
  });
}

TEST_P(Async, ManyWorksKeepTheirOrderAndTimes) {
  run_ranks(GetParam(), 3, [](ProcessGroup& group) {
    std::vector<std::int64_t> value(1, 1);
    std::vector<std::shared_ptr<Work>> works;
    for (int i = 0; i < 30; ++i) works.push_back(group.all_reduce(span_of(value)));
    works.back()->wait();
    std::int64_t wanted = 1, last_end = 0;
    for (int i = 0; i < 30; ++i) wanted *= 3;
    EXPECT_EQ(value[0], wanted);
    for (const auto& work : works) {
      EXPECT_TRUE(work->done());
      const WorkTimes times = work->times();
      EXPECT_LE(times.enqueued, times.start);
      EXPECT_LE(times.start, times.end);
      EXPECT_LE(last_end, times.start);
      last_end = times.end;
    }
  });
}

TEST_P(Async, SynchronousCallsQueueBehindOthers) {
  run_ranks(GetParam(), 2, [](ProcessGroup& group) {
    std::vector<float> large(300000, 1), small(1, 1);
    for (int i = 0; i < 5; ++i) {
      auto work = group.all_reduce(span_of(large));
      group.all_reduce_sync(span_of(small));
      EXPECT_TRUE(work->done());
    }
    EXPECT_EQ(large[299999], 32.0f);
    EXPECT_EQ(small[0], 32.0f);
  });
}

TEST_P(Async, AWorkThatWaitsForPeersIsNotDone) {
  std::atomic<bool> go{false};
  run_ranks(GetParam(), 2, [&](ProcessGroup& group) {
    float value = 1;
    if (group.rank() == 0) {
      auto work = group.all_reduce(span_of(&value, 1));
      EXPECT_FALSE(work->done());
      EXPECT_EQ(work->times().end, 0);
      go = true;
      work->wait();
    } else {
      while (!go) std::this_thread::yield();
      group.all_reduce(span_of(&value, 1))->wait();
    }
    EXPECT_EQ(value, 2.0f);
  });
}

// A timer whose handler interrupts system calls must not disturb (marian-nmt/marian-dev#660).
TEST_P(Async, SignalsDoNotDisturb) {
  static std::atomic<int> alarms{0};
  alarms = 0;
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { alarms.fetch_add(1); };
  sigaction(SIGALRM, &action, &before);
  itimerval every{{0, 1000}, {0, 1000}}, off{};
  setitimer(ITIMER_REAL, &every, nullptr);
  const auto errors = try_ranks(GetParam(), 4, [](ProcessGroup& group) {
    std::vector<float> x(1 << 20, static_cast<float>(group.rank() + 1));
    for (int i = 0; i < 3; ++i) {
      std::fill(x.begin(), x.end(), static_cast<float>(group.rank() + 1));
      group.all_reduce(span_of(x))->wait();
      for (float v : x) ASSERT_EQ(v, 10.0f);
    }
  });
  setitimer(ITIMER_REAL, &off, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  for (const auto& error : errors) EXPECT_EQ(message_of(error), "");
  EXPECT_GT(alarms.load(), 0);
}

// Shutdown is no collective: who has finished may go (pytorch/pytorch#123969).
TEST_P(Async, ARankMayLeaveAfterTheLastCollective) {
  run_ranks(GetParam(), 3, [](ProcessGroup& group) {
    std::vector<float> x(100000, 1);
    group.all_reduce(span_of(x))->wait();
    // The others look at their result long after rank 0 has gone.
    if (group.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (float v : x) ASSERT_EQ(v, 3.0f);
  });
}

TEST_P(Async, GroupsOfOneJobDoNotMix) {
  auto store = std::make_shared<LocalStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      ProcessGroupOptions options;
      options.name = "first";
      auto a = make_process_group(GetParam(), store, rank, 3, options);
      options.name = "second";
      auto b = make_process_group(GetParam(), store, 2 - rank, 3, options);
      std::int64_t x = rank, all[3] = {};
      b->all_gather(span_of(&x, 1), span_of(all, 3))->wait();
      EXPECT_EQ(all[0], 2);
      EXPECT_EQ(all[2], 0);
      a->all_gather(span_of(&x, 1), span_of(all, 3))->wait();
      EXPECT_EQ(all[0], 0);
      EXPECT_EQ(all[2], 2);
    });
  for (auto& thread : threads) thread.join();
}

TEST_P(Async, SymmetricMemoryOutlivesItsGroupAndIsReused) {
  run_ranks(GetParam(), 2, [](ProcessGroup& group) {
    std::vector<Tensor> kept;
    for (int i = 0; i < 20; ++i) {
      Tensor t = group.allocate_tensor({50000});
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(t.data()) % 64, 0u);
      for (std::int64_t k = 0; k < 50000; k += 999) ASSERT_EQ(t.data<float>()[k], 0.0f);
      for (std::int64_t k = 0; k < 50000; ++k) t.data<float>()[k] = static_cast<float>(i);
      group.all_reduce(span_of(t))->wait();
      ASSERT_EQ(t.data<float>()[49999], 2.0f * static_cast<float>(i));
      if (i % 5 == 0) kept.push_back(t);
    }
    for (std::size_t i = 0; i < kept.size(); ++i)
      ASSERT_EQ(kept[i].data<float>()[77], 10.0f * static_cast<float>(i));
    EXPECT_EQ(group.allocate(0)->bytes(), 0u);
  });
  std::shared_ptr<Storage> survivor;
  run_ranks(GetParam(), 1, [&](ProcessGroup& group) { survivor = group.allocate(100); });
  static_cast<char*>(survivor->data())[99] = 1;
}

INSTANTIATE_TEST_SUITE_P(Groups, Async, ::testing::Values("local", "shm"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep::dist
