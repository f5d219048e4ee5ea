// The loop over threads: each element once, whatever the number, and what ends with the pool.
#include "lockstep/core/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/config.h"
#include "lockstep/core/error.h"

namespace lockstep {
namespace {

int live_threads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  return -1;
}

TEST(ParallelFor, VisitsEachElementOnce) {
  for (int threads : {1, 2, 5, 16})
    for (std::int64_t n : {0, 1, 2, 7, 100, 1001})
      for (std::int64_t grain : {0, 1, 3, 64, 5000}) {
        set_num_threads(threads);
        std::vector<std::atomic<int>> visits(n);
        parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
          EXPECT_LT(begin, end);
          for (std::int64_t i = begin; i < end; ++i) ++visits[i];
        });
        for (const auto& v : visits) EXPECT_EQ(v, 1);
      }
  set_num_threads(0);
}

TEST(ParallelFor, GivesRangesOfAtLeastTheGrain) {
  set_num_threads(4);
  std::atomic<int> ranges = 0;
  parallel_for(10, 6, [&](std::int64_t, std::int64_t) { ++ranges; });
  EXPECT_LE(ranges, 2);
  ranges = 0;
  parallel_for(10, 10, [&](std::int64_t, std::int64_t) { ++ranges; });
  EXPECT_EQ(ranges, 1);
  set_num_threads(0);
}

TEST(ParallelFor, NestsWithoutMoreThreads) {
  set_num_threads(3);
  std::atomic<int> sum = 0;
  parallel_for(6, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      parallel_for(10, 1, [&](std::int64_t b, std::int64_t e) { sum += static_cast<int>(e - b); });
  });
  EXPECT_EQ(sum, 60);
  set_num_threads(0);
}

TEST(ParallelFor, PassesAnException) {
  set_num_threads(4);
  EXPECT_THROW(parallel_for(100, 1,
                            [](std::int64_t begin, std::int64_t end) {
                              if (begin <= 50 && 50 < end) throw std::out_of_range("50");
                            }),
               std::out_of_range);
  set_num_threads(0);
}

TEST(Threads, EachThreadHasItsOwnNumber) {
  EXPECT_THROW(set_num_threads(-1), Error);
  set_num_threads(3);
  int there = 0;
  std::thread([&] {
    set_num_threads(2);
    there = num_threads();
  }).join();
  EXPECT_EQ(num_threads(), kHasOpenMp ? 3 : 1);
  EXPECT_EQ(there, kHasOpenMp ? 2 : 1);
  set_num_threads(0);
}

TEST(Threads, DeterministicModeIsPerThreadAndOnAtFirst) {
  EXPECT_TRUE(deterministic());
  set_deterministic(false);
  bool there = false;
  std::thread([&] { there = deterministic(); }).join();
  EXPECT_TRUE(there);
  EXPECT_FALSE(deterministic());
  set_deterministic(true);
}

// microsoft/onnxruntime#21461: after shutdown() no thread of ours is left, and work can go on.
TEST(Threads, ShutdownEndsThePool) {
  for (int cycle = 0; cycle < 5; ++cycle) {
    set_num_threads(4);
    std::atomic<std::int64_t> sum = 0;
    parallel_for(1000000, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 1000000);
    EXPECT_EQ(live_threads(), kHasOpenMp ? 4 : 1);
    shutdown();
    EXPECT_EQ(live_threads(), 1);
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace lockstep
