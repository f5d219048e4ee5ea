// What goes wrong among ranks that are threads: every rank gets an error that says what happened.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "dist/run_ranks.h"

namespace lockstep::dist {
namespace {

using testing::is_error;
using testing::message_of;
using testing::try_ranks;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ProcessGroupOptions with_timeout(std::chrono::milliseconds timeout) {
  ProcessGroupOptions options;
  options.timeout = timeout;
  return options;
}

class GroupErrors : public ::testing::TestWithParam<std::string> {};

// 200 floats against 100 hung for ever (pytorch/pytorch#97191).
TEST_P(GroupErrors, DifferentSizesAreNamedOnBothRanks) {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = try_ranks(GetParam(), 2, [](ProcessGroup& group) {
    std::vector<float> x(group.rank() == 0 ? 200 : 100);
    group.all_reduce(span_of(x), ReduceOp::kSum, {3, 0})->wait();
  });
  for (const auto& error : errors) {
    EXPECT_TRUE(is_error<CommError>(error));
    EXPECT_EQ(message_of(error),
              "collective number 1 differs among the ranks: rank 0: all_reduce sum of 200 f32 "
              "(step 3, bucket 0); rank 1: all_reduce sum of 100 f32 (step 3, bucket 0)");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_P(GroupErrors, EveryKindOfDifferenceIsNoticed) {
  using Call = std::function<std::shared_ptr<Work>(ProcessGroup&, Span)>;
  const auto all_reduce = [](ReduceOp op, Tag tag) {
    return Call([=](ProcessGroup& g, Span s) { return g.all_reduce(s, op, tag); });
  };
  const std::vector<std::pair<Call, Call>> pairs = {
      {all_reduce(ReduceOp::kSum, {}), all_reduce(ReduceOp::kMax, {})},
      {all_reduce(ReduceOp::kSum, {1, 2}), all_reduce(ReduceOp::kSum, {1, 3})},
      {all_reduce(ReduceOp::kSum, {1, 2}), all_reduce(ReduceOp::kSum, {2, 2})},
      {all_reduce(ReduceOp::kSum, {}), [](ProcessGroup& g, Span s) { return g.broadcast(s, 0); }},
      {[](ProcessGroup& g, Span s) { return g.broadcast(s, 1); },
       [](ProcessGroup& g, Span s) { return g.broadcast(s, 0); }},
      {all_reduce(ReduceOp::kSum, {}), [](ProcessGroup& g, Span) { return g.barrier(); }},
      {all_reduce(ReduceOp::kSum, {}),
       [](ProcessGroup& g, Span s) {
         return g.all_reduce({s.data, s.count, kI32});
       }},
  };
  for (const auto& [on_zero, on_others] : pairs)
    for (const std::int64_t count : {10, 40000}) {
      const auto errors = try_ranks(GetParam(), 3, [&](ProcessGroup& group) {
        std::vector<float> x(static_cast<std::size_t>(count));
        (group.rank() == 0 ? on_zero : on_others)(group, span_of(x))->wait();
      });
      for (const auto& error : errors) {
        EXPECT_TRUE(is_error<CommError>(error));
        EXPECT_TRUE(contains(message_of(error), "rank 0: ")) << message_of(error);
      }
    }
}

// A rank with one step less must not leave the others waiting (pytorch/pytorch#33148).
TEST_P(GroupErrors, AMissingRankIsATimeoutThatNamesItAndTheBucket) {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = try_ranks(
      GetParam(), 3,
      [](ProcessGroup& group) {
        std::vector<float> x(10);
        for (int step = 0; step < (group.rank() == 1 ? 2 : 3); ++step)
          group.all_reduce(span_of(x), ReduceOp::kSum, {step, 4})->wait();
        if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(900));
      },
      with_timeout(std::chrono::milliseconds(300)));
  EXPECT_EQ(message_of(errors[1]), "");
  int timeouts = 0;
  for (const int rank : {0, 2}) {
    const auto& error = errors[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(is_error<CommError>(error));
    timeouts += is_error<TimeoutError>(error);
    EXPECT_TRUE(
        contains(message_of(error), "all_reduce sum of 10 f32 (step 2, bucket 4), number 3"))
        << message_of(error);
    EXPECT_TRUE(contains(message_of(error), "for rank 1")) << message_of(error);
  }
  EXPECT_GE(timeouts, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_P(GroupErrors, ARankThatHasLeftIsNoticedLongBeforeTheTimeout) {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = try_ranks(GetParam(), 2, [](ProcessGroup& group) {
    float x = 1;
    group.all_reduce(span_of(&x, 1))->wait();
    if (group.rank() == 0) group.all_reduce(span_of(&x, 1))->wait();
  });
  const std::string message = message_of(errors[0]);
  EXPECT_EQ(message.find("all_reduce sum of 1 f32, number 2: rank 1"), 0u) << message;
  EXPECT_TRUE(contains(message, "left the group before it took part")) << message;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST_P(GroupErrors, AbortEndsEveryWaitAndEveryLaterCall) {
  std::atomic<int> waiting{0};
  const auto errors = try_ranks(GetParam(), 3, [&](ProcessGroup& group) {
    std::vector<float> x(10);
    if (group.rank() == 2) {
      while (waiting < 2) std::this_thread::yield();
      group.abort("out of disk");
      EXPECT_THROW(group.barrier()->wait(), CommError);
      return;
    }
    auto first = group.all_reduce(span_of(x));
    auto second = group.all_reduce(span_of(x));
    ++waiting;
    try {
      first->wait();
      ADD_FAILURE() << "a wait survived the abort";
    } catch (const CommError& error) {
      EXPECT_TRUE(contains(error.what(), "rank 2")) << error.what();
      EXPECT_TRUE(contains(error.what(), "out of disk")) << error.what();
    }
    EXPECT_THROW(second->wait(), CommError);
    EXPECT_NE(second->error(), nullptr);
    EXPECT_THROW(group.all_reduce(span_of(x))->wait(), CommError);
    EXPECT_THROW(group.all_reduce_sync(span_of(x)), CommError);
    EXPECT_THROW(group.send(span_of(x), 2)->wait(), CommError);
  });
  for (const auto& error : errors) EXPECT_EQ(message_of(error), "");
}

// An exception on one rank while others wait must not block the end of its group
// (pytorch/torchtitan#1342).
TEST_P(GroupErrors, AnErrorOutsideReachesTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::vector<float>> vectors(2, std::vector<float>(10));  // outlive the work
  const auto errors = try_ranks(GetParam(), 2, [&](ProcessGroup& group) {
    std::vector<float>& x = vectors[static_cast<std::size_t>(group.rank())];
    auto work = group.all_reduce(span_of(x));
    if (group.rank() == 1) throw Error("bad record 37");
    work->wait();
    group.all_reduce(span_of(x))->wait();
  });
  EXPECT_TRUE(contains(message_of(errors[0]), "bad record 37")) << message_of(errors[0]);
  EXPECT_EQ(message_of(errors[1]), "bad record 37");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST_P(GroupErrors, DestructionWithWorksUnfinishedDoesNotWait) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<float> x(10);  // outlives the work
  const auto errors = try_ranks(GetParam(), 2, [&](ProcessGroup& group) {
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return;
    }
    group.all_reduce(span_of(x));
  });
  for (const auto& error : errors) EXPECT_EQ(message_of(error), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST_P(GroupErrors, MessagesThatDifferFailOnBothSides) {
  const auto errors = try_ranks(GetParam(), 2, [](ProcessGroup& group) {
    std::vector<float> x(group.rank() == 0 ? 20 : 30);
    if (group.rank() == 0)
      group.send(span_of(x), 1)->wait();
    else
      group.recv(span_of(x), 0)->wait();
  });
  for (const auto& error : errors) {
    EXPECT_TRUE(is_error<CommError>(error));
    EXPECT_TRUE(contains(message_of(error), "send of 20 f32")) << message_of(error);
    EXPECT_TRUE(contains(message_of(error), "recv of 30 f32")) << message_of(error);
  }
}

TEST_P(GroupErrors, MistakesOfTheCallerAreRefusedAtTheCallAndHarmNothing) {
  testing::run_ranks(GetParam(), 2, [](ProcessGroup& group) {
    std::vector<float> x(10), y(20);
    std::vector<std::int32_t> z(10);
    EXPECT_THROW(group.all_reduce(span_of(x), span_of(y)), Error);
    EXPECT_THROW(group.all_reduce(span_of(x), span_of(z)), Error);
    EXPECT_THROW(group.all_reduce({nullptr, 3, kF32}), Error);
    EXPECT_THROW(group.all_reduce({x.data(), -1, kF32}), Error);
    EXPECT_THROW(group.all_reduce(span_of(y.data(), 10), span_of(y.data() + 5, 10)), Error);
    EXPECT_THROW(group.broadcast(span_of(x), 2), Error);
    EXPECT_THROW(group.broadcast(span_of(x), -1), Error);
    EXPECT_THROW(group.all_gather(span_of(x), span_of(x)), Error);
    EXPECT_THROW(group.reduce_scatter(span_of(x), span_of(x)), Error);
    EXPECT_THROW(group.send(span_of(x), group.rank()), Error);
    EXPECT_THROW(group.recv(span_of(x), 7), Error);
    Tensor strided = zeros({4, 4}).select(1, 0);
    EXPECT_THROW(span_of(strided), Error);
    x.assign(10, 1);
    group.all_reduce(span_of(x))->wait();
    EXPECT_EQ(x[9], 2.0f);
  });
}

TEST(MakeProcessGroup, RefusesWhatMakesNoSense) {
  auto store = std::make_shared<LocalStore>();
  EXPECT_THROW(make_process_group("carrier-pigeon", store, 0, 1), Error);
  EXPECT_THROW(make_process_group("local", store, 1, 1), Error);
  EXPECT_THROW(make_process_group("local", store, 0, 0), Error);
  EXPECT_THROW(make_process_group("local", nullptr, 0, 1), Error);
}

TEST_P(GroupErrors, ARankThatNeverComesIsNamed) {
  auto store = std::make_shared<LocalStore>();
  const auto options = with_timeout(std::chrono::milliseconds(200));
  try {
    make_process_group(GetParam(), store, 0, 2, options);
    FAIL() << "a group of two was made by one";
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(contains(error.what(), "for rank 1")) << error.what();
  }
  EXPECT_THROW(make_process_group(GetParam(), store, 1, 2, options), CommError);
  auto empty = std::make_shared<LocalStore>();
  EXPECT_THROW(make_process_group(GetParam(), empty, 1, 2, options), TimeoutError);
}

INSTANTIATE_TEST_SUITE_P(Groups, GroupErrors, ::testing::Values("local", "shm"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep::dist
