// The shm group among processes: death, freezing, early leave, more ranks than cores, nothing left.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dist/process_ranks.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/process_watch.h"

namespace lockstep::dist {
namespace {

using testing::ProcessRanks;
using testing::ProcessResult;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Segments of groups; not the folders that other tests have there meanwhile.
std::set<std::string> segments() {
  const std::string start = "lockstep-" + std::to_string(getuid()) + "-";
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (const std::string name = entry.path().filename(); name.starts_with(start))
      names.insert(name);
  return names;
}

ProcessGroupOptions with_timeout(std::chrono::milliseconds timeout) {
  ProcessGroupOptions options;
  options.timeout = timeout;
  return options;
}

// Sums in symmetric and plain memory, `rounds` times; "ok" or what was wrong.
std::string sum_repeatedly(ProcessGroup& group, int rounds) {
  const int n = group.size();
  Tensor bucket = group.allocate_tensor({60000});
  std::vector<float> plain(30000), small(3);
  const auto total = static_cast<float>(n * (n + 1) / 2);
  for (int i = 0; i < rounds; ++i) {
    const auto mine = static_cast<float>(group.rank() + 1);
    std::fill_n(bucket.data<float>(), 60000, mine);
    std::fill(plain.begin(), plain.end(), mine);
    std::fill(small.begin(), small.end(), mine);
    auto a = group.all_reduce(span_of(bucket), ReduceOp::kSum, {i, 0});
    auto b = group.all_reduce(span_of(plain), ReduceOp::kSum, {i, 1});
    a->wait();
    b->wait();
    group.all_reduce_sync(span_of(small), ReduceOp::kSum, {i, 2});
    for (int k = 0; k < 60000; ++k)
      if (bucket.data<float>()[k] != total) return "bucket";
    for (float v : plain)
      if (v != total) return "plain";
    for (float v : small)
      if (v != total) return "small";
  }
  return "ok";
}

void expect_all_ok(int size, int rounds) {
  ProcessRanks ranks(size, [&](int rank, std::shared_ptr<Store> store) {
    auto group = make_process_group("shm", store, rank, size);
    return sum_repeatedly(*group, rounds);
  });
  for (int rank = 0; rank < size; ++rank) {
    const ProcessResult result = ranks.finish(rank, 60);
    EXPECT_EQ(result.text, "ok") << "rank " << rank;
    EXPECT_TRUE(result.exited_well());
  }
}

TEST(ShmProcesses, ReduceInEveryKindOfMemory) {
  for (const int size : {1, 2, 3, 4}) expect_all_ok(size, 4);
}

// More ranks than cores: waits must give the core away.
TEST(ShmProcesses, EightAndSixteenRanksOnFewCores) {
  const auto begin = std::chrono::steady_clock::now();
  expect_all_ok(8, 3);
  expect_all_ok(16, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
}

TEST(ShmProcesses, AKilledRankIsNoticedAtOnceAndNothingIsLeft) {
  const auto before = segments();
  {
    ProcessRanks ranks(3, [](int rank, std::shared_ptr<Store> store) -> std::string {
      auto group = make_process_group("shm", store, rank, 3);
      Tensor bucket = group->allocate_tensor({60000});
      group->all_reduce(span_of(bucket), ReduceOp::kSum, {0, 0})->wait();
      if (rank == 1) raise(SIGKILL);
      const auto begin = std::chrono::steady_clock::now();
      try {
        group->all_reduce(span_of(bucket), ReduceOp::kSum, {1, 0})->wait();
      } catch (const CommError& error) {
        const auto took = std::chrono::steady_clock::now() - begin;
        return (took < std::chrono::seconds(2) ? "soon: " : "late: ") + std::string(error.what());
      }
      return "no error";
    });
    for (const int rank : {0, 2}) {
      const ProcessResult result = ranks.finish(rank);
      EXPECT_TRUE(contains(result.text, "soon: ")) << result.text;
      EXPECT_TRUE(contains(result.text, "all_reduce sum of 60000 f32 (step 1, bucket 0)"))
          << result.text;
      EXPECT_TRUE(contains(result.text, "rank 1 (process ")) << result.text;
      EXPECT_TRUE(contains(result.text, "died")) << result.text;
    }
  }
  EXPECT_EQ(segments(), before);
}

TEST(ShmProcesses, AFrozenRankIsATimeoutThatSaysSo) {
  ProcessRanks ranks(2, [](int rank, std::shared_ptr<Store> store) -> std::string {
    auto group = make_process_group("shm", store, rank, 2, with_timeout(std::chrono::seconds(1)));
    std::vector<float> x(50000);
    group->all_reduce(span_of(x), ReduceOp::kSum, {0, 0})->wait();
    if (rank == 1) raise(SIGSTOP);
    try {
      group->all_reduce(span_of(x), ReduceOp::kSum, {1, 7})->wait();
    } catch (const TimeoutError& error) {
      return std::string("timeout: ") + error.what();
    } catch (const CommError& error) {
      return std::string("comm: ") + error.what();
    }
    return "no error";
  });
  const ProcessResult waiting = ranks.finish(0);
  EXPECT_TRUE(contains(waiting.text,
                       "timeout: all_reduce sum of 50000 f32 (step 1, bucket 7), "
                       "number 2: rank 0 waited 1 s for rank 1 (process "))
      << waiting.text;
  EXPECT_TRUE(contains(waiting.text, ", stopped")) << waiting.text;
  EXPECT_LT(waiting.seconds, 10);
  // Thawed, it learns why.
  kill(ranks.pid(1), SIGCONT);
  const ProcessResult frozen = ranks.finish(1);
  EXPECT_TRUE(contains(frozen.text, "comm: ")) << frozen.text;
  EXPECT_TRUE(contains(frozen.text, "rank 0 ")) << frozen.text;
}

TEST(ShmProcesses, ARankMayExitBeforeTheOthersLookAtTheirResult) {
  ProcessRanks ranks(3, [](int rank, std::shared_ptr<Store> store) -> std::string {
    auto group = make_process_group("shm", store, rank, 3);
    Tensor x = group->allocate_tensor({60000});
    std::fill_n(x.data<float>(), 60000, 1.0f);
    group->all_reduce(span_of(x))->wait();
    if (rank == 0) return "gone";
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    for (int i = 0; i < 60000; ++i)
      if (x.data<float>()[i] != 3.0f) return "wrong";
    group.reset();
    return "ok";
  });
  EXPECT_EQ(ranks.finish(0).text, "gone");
  EXPECT_EQ(ranks.finish(1).text, "ok");
  EXPECT_EQ(ranks.finish(2).text, "ok");
}

TEST(ShmProcesses, DifferentSizesAreNamedOnBothRanks) {
  ProcessRanks ranks(2, [](int rank, std::shared_ptr<Store> store) -> std::string {
    auto group = make_process_group("shm", store, rank, 2);
    std::vector<float> x(rank == 0 ? 200 : 100);
    group->all_reduce(span_of(x))->wait();
    return "no error";
  });
  for (const int rank : {0, 1})
    EXPECT_EQ(ranks.finish(rank).text,
              "error: collective number 1 differs among the ranks: rank 0: all_reduce sum of 200 "
              "f32; rank 1: all_reduce sum of 100 f32");
}

TEST(ShmProcesses, ThreadsOfOneProcessAreNotALocalGroupOfTwo) {
  ProcessRanks ranks(2, [](int rank, std::shared_ptr<Store> store) -> std::string {
    make_process_group("local", store, rank, 2, with_timeout(std::chrono::milliseconds(500)));
    return "made";
  });
  EXPECT_TRUE(contains(ranks.finish(1).text, "must be threads of one process"));
  EXPECT_TRUE(contains(ranks.finish(0).text, "for rank 1"));
}

TEST(ProcessWatch, SeesStatesAndTheEnd) {
  const pid_t child = fork();
  if (child == 0)
    while (true) pause();
  const ProcessWatch watch(child);
  EXPECT_FALSE(watch.ended());
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(watch.state(), "stopped");
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(watch.ended()) << "not reaped yet, but it has ended";
  EXPECT_EQ(watch.state(), "ended");
  waitpid(child, &status, 0);
  EXPECT_TRUE(watch.ended());
  EXPECT_FALSE(ProcessWatch().ended());
}

}  // namespace
}  // namespace lockstep::dist
