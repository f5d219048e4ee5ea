#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/safetensors.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/data/sampler.h"
#include "lockstep/data/shard.h"
#include "support/message.h"

namespace lockstep::data {
namespace {

using Indices = std::vector<std::int64_t>;
using testing::message_of;

Indices iota(std::int64_t n) {
  Indices all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

Indices sorted(Indices indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

// "n/world/epoch/seed/shuffle/drop_last" as numbers.
std::vector<std::uint64_t> numbers_of(const std::string& name) {
  std::vector<std::uint64_t> numbers;
  const char* at = name.data();
  const char* end = at + name.size();
  while (at < end) {
    at = std::from_chars(at, end, numbers.emplace_back()).ptr;
    if (at < end) ++at;
  }
  return numbers;
}

TEST(ShardIndices, EqualPyTorchsLists) {
  const TensorMap lists =
      load_safetensors(LOCKSTEP_SOURCE_DIR "/tests/reference/values/sampler.safetensors");
  ASSERT_GT(lists.size(), 500u);
  for (const auto& [name, list] : lists) {
    const auto v = numbers_of(name);
    ASSERT_EQ(v.size(), 6u) << name;
    const auto n = static_cast<std::int64_t>(v[0]), world = static_cast<std::int64_t>(v[1]),
               epoch = static_cast<std::int64_t>(v[2]);
    const bool shuffle = v[4] != 0, drop_last = v[5] != 0;
    ASSERT_EQ(list.size(0), world);
    ASSERT_EQ(list.size(1), shard_size(n, world, drop_last)) << name;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const auto* row = list.data<std::int32_t>() + rank * list.size(1);
      const Indices wanted(row, row + list.size(1));
      ASSERT_EQ(shard_indices(n, rank, world, epoch, v[3], shuffle, drop_last), wanted)
          << name << " rank " << rank;
      DistributedSampler sampler(n, rank, world,
                                 {.shuffle = shuffle, .seed = v[3], .drop_last = drop_last});
      sampler.set_epoch(epoch);
      EXPECT_EQ(sampler.size(), list.size(1));
      EXPECT_EQ(sampler.indices(), wanted);
    }
  }
}

TEST(ShardIndices, WorkedExamples) {
  EXPECT_EQ(shard_indices(10, 2, 4, 0, 0, false), Indices({2, 6, 0}));
  EXPECT_EQ(shard_indices(10, 3, 4, 0, 0, false, true), Indices({3, 7}));
  EXPECT_EQ(shard_indices(3, 6, 7, 0, 0, false), Indices({0}));
  EXPECT_EQ(shard_indices(3, 0, 7, 0, 0, false, true), Indices());
}

TEST(ShardIndices, WrongArgumentsAreNamed) {
  EXPECT_HOLDS(message_of<Error>([] { shard_indices(4, 2, 2); }), "rank 2 is outside 0..1");
  EXPECT_HOLDS(message_of<Error>([] { shard_indices(4, -1, 2); }), "rank -1 is outside 0..1");
  EXPECT_HOLDS(message_of<Error>([] { shard_indices(4, 0, 0); }), "got 0");
  EXPECT_HOLDS(message_of<Error>([] { shard_indices(-1, 0, 1); }), "got -1");
  EXPECT_ANY_THROW(DistributedSampler(4, 2, 2));
  EXPECT_ANY_THROW(ExactDistributedSampler(4, 2, 2));
  EXPECT_ANY_THROW(RandomSampler(-1, 0));
  EXPECT_ANY_THROW(SequentialSampler(-1));
  EXPECT_HOLDS(message_of<Error>([] { check_enough_examples(3, 4); }),
               "4 ranks need at least 4 examples but there are 3");
  EXPECT_NO_THROW(check_enough_examples(4, 4));
}

// https://github.com/pytorch/pytorch/issues/73141: each epoch has an order of its own.
TEST(DistributedSampler, EpochsAreDisjointCompleteAndDiffer) {
  const auto run = [] {
    std::vector<std::vector<Indices>> epochs;
    DistributedSampler first(8, 0, 2, {.seed = 1}), second(8, 1, 2, {.seed = 1});
    for (int epoch = 0; epoch < 5; ++epoch) {
      first.set_epoch(epoch);
      second.set_epoch(epoch);
      epochs.push_back({first.indices(), second.indices()});
    }
    return epochs;
  };
  const auto epochs = run();
  EXPECT_EQ(run(), epochs);
  std::set<std::vector<Indices>> orders;
  for (const auto& epoch : epochs) {
    Indices all = epoch[0];
    all.insert(all.end(), epoch[1].begin(), epoch[1].end());
    EXPECT_EQ(sorted(all), iota(8));
    orders.insert(epoch);
  }
  EXPECT_GT(orders.size(), 1u);
}

class CapturedLog {
 public:
  CapturedLog() {
    set_log_sink([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::kWarning) warnings.emplace_back(message);
    });
  }
  ~CapturedLog() { set_log_sink({}); }
  std::vector<std::string> warnings;
};

// https://github.com/pytorch/pytorch/issues/31771: the same order in each epoch, unnoticed.
TEST(DistributedSampler, ASecondPassWithoutSetEpochRepeatsAndWarnsOnce) {
  const CapturedLog log;
  DistributedSampler sampler(16, 0, 2);
  const Indices first = sampler.indices();
  EXPECT_TRUE(log.warnings.empty());
  EXPECT_EQ(sampler.indices(), first);
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_HOLDS(log.warnings[0], "set_epoch");
  EXPECT_EQ(sampler.indices(), first);
  EXPECT_EQ(log.warnings.size(), 1u);
}

TEST(DistributedSampler, NoWarningWhereThereIsNothingToWarnOf) {
  const CapturedLog log;
  DistributedSampler set(16, 0, 2), in_order(16, 0, 2, {.shuffle = false});
  DistributedSampler advancing(16, 0, 2, {.advance_epoch = true});
  for (int pass = 0; pass < 3; ++pass) {
    set.set_epoch(pass);
    EXPECT_EQ(set.indices(), shard_indices(16, 0, 2, pass));
    in_order.indices();
    EXPECT_EQ(advancing.indices(), shard_indices(16, 0, 2, pass));
    EXPECT_EQ(advancing.epoch(), pass);
  }
  EXPECT_TRUE(log.warnings.empty());
}

// https://github.com/pytorch/pytorch/issues/31232: ranks in different epochs overlap.
TEST(CheckSameEpoch, NamesEachRanksEpoch) {
  EXPECT_EQ(message_of<Error>([] {
              check_same_epoch(Indices{0, 1});
            }),
            "epoch differs: rank 0=0, rank 1=1");
  EXPECT_NO_THROW(check_same_epoch(Indices{3, 3, 3}));
  EXPECT_NO_THROW(check_same_epoch(Indices{}));
}

// https://github.com/pytorch/pytorch/issues/25162: padding counts an example twice.
TEST(ExactDistributedSampler, FiveExamplesOnTwoRanksGiveExactlyFourFifths) {
  const auto correct = [](std::int64_t index) { return index != 0 ? 1 : 0; };
  int padded_right = 0, padded_seen = 0, right = 0, seen = 0;
  for (int rank = 0; rank < 2; ++rank) {
    for (const auto i : DistributedSampler(5, rank, 2, {.shuffle = false}).indices()) {
      padded_right += correct(i);
      ++padded_seen;
    }
    ExactDistributedSampler exact(5, rank, 2);
    const Indices mine = exact.indices();
    EXPECT_EQ(exact.size(), static_cast<std::int64_t>(mine.size()));
    for (const auto i : mine) {
      right += correct(i);
      ++seen;
    }
  }
  EXPECT_EQ(padded_right, 4);
  EXPECT_EQ(padded_seen, 6);
  EXPECT_EQ(right, 4);
  EXPECT_EQ(seen, 5);
}

TEST(ExactDistributedSampler, CoversEverythingOnceForAnySizes) {
  for (const std::int64_t n : {0, 1, 2, 7, 16, 33})
    for (const std::int64_t world : {1, 2, 3, 8}) {
      Indices all;
      for (std::int64_t rank = 0; rank < world; ++rank) {
        ExactDistributedSampler sampler(n, rank, world);
        const Indices mine = sampler.indices();
        EXPECT_EQ(sampler.size(), static_cast<std::int64_t>(mine.size()));
        all.insert(all.end(), mine.begin(), mine.end());
      }
      EXPECT_EQ(sorted(all), iota(n)) << n << " on " << world;
    }
}

TEST(RandomSampler, EachPassIsThePermutationOfItsEpoch) {
  RandomSampler sampler(10, 42);
  const Indices first = sampler.indices();
  EXPECT_EQ(sorted(first), iota(10));
  const Indices second = sampler.indices();
  EXPECT_NE(first, second);
  EXPECT_EQ(sampler.epoch(), 1);
  sampler.set_epoch(0);
  EXPECT_EQ(sampler.indices(), first);
  EXPECT_EQ(sampler.indices(), second);
}

TEST(SequentialSampler, IsInOrderEachTime) {
  SequentialSampler sampler(4);
  EXPECT_EQ(sampler.indices(), iota(4));
  EXPECT_EQ(sampler.indices(), iota(4));
}

// https://github.com/mlcommons/logging/issues/276: what "epoch" and "samples" mean.
TEST(PlanEpoch, CountsOfALargeRun) {
  const EpochPlan kept = plan_epoch(1'281'167, 1024, false);
  EXPECT_EQ(kept.steps, 1252);
  EXPECT_EQ(kept.last_batch, 143);
  EXPECT_EQ(3 * kept.samples, 3'843'501);
  const EpochPlan dropped = plan_epoch(1'281'167, 1024, true);
  EXPECT_EQ(dropped.steps, 1251);
  EXPECT_EQ(dropped.last_batch, 1024);
  EXPECT_EQ(3 * dropped.samples, 3'843'072);
  EXPECT_EQ(plan_epoch(0, 4, false).steps, 0);
  EXPECT_EQ(plan_epoch(3, 4, true).steps, 0);
  EXPECT_EQ(plan_epoch(3, 4, true).last_batch, 0);
  EXPECT_HOLDS(message_of<Error>([] { plan_epoch(4, 0, false); }), "at least 1, got 0");
}

}  // namespace
}  // namespace lockstep::data
