// Ranks that die, freeze, differ or stand in the wrong place: the cause is named once and soon.
#include <gtest/gtest.h>

#include <signal.h>
#include <fstream>
#include <string>

#include "e2e/training/train_job.h"
#include "lockstep/dist/socket.h"
#include "lockstep/train/checkpoint.h"

namespace lockstep::testing {
namespace {

Words long_run(const TempFolder& folder, const Words& flags = {}) {
  return trainer(folder, Words{"-e", "5000", "--stop-patience=5000", "--save-every", "2"} + flags);
}

// The launcher's lines about ends, without the addresses it starts with.
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class KilledRank : public ::testing::TestWithParam<int> {};

// pytorch/pytorch#17113: one rank dies, the others wait.
TEST_P(KilledRank, IsTheNamedCauseAndTheCheckpointLoads) {
  const TempFolder folder;
  Job job(on_ranks(3, long_run(folder)));
  ASSERT_TRUE(wait_for_saves(job, run_files(folder).last(), 3)) << job.err();
  const pid_t victim = job.rank_pid(GetParam());
  ASSERT_GT(victim, 0);
  const double before = job.seconds();
  ::kill(victim, SIGKILL);
  EXPECT_EQ(job.wait(), 137);
  EXPECT_LT(job.seconds() - before, 5);
  EXPECT_TRUE(job.complaints().empty()) << job.err();
  EXPECT_HOLDS(job.err(), "root cause: rank " + std::to_string(GetParam()) + " signal 9 (SIGKILL)");
  EXPECT_EQ(count(job.err(), "root cause"), 1u) << job.err();
  EXPECT_NO_THROW(train::load_checkpoint(run_files(folder).last(), "mlp"));
}

INSTANTIATE_TEST_SUITE_P(Ranks, KilledRank, ::testing::Values(0, 2));

class FrozenRank : public ::testing::TestWithParam<int> {};

TEST_P(FrozenRank, IsNamedAtTheTimeout) {
  const TempFolder folder;
  Job job(on_ranks(3, long_run(folder, {"--timeout", "3"})));
  ASSERT_TRUE(wait_for_saves(job, run_files(folder).last(), 3)) << job.err();
  const pid_t victim = job.rank_pid(GetParam());
  ASSERT_GT(victim, 0);
  const double before = job.seconds();
  ::kill(victim, SIGSTOP);
  EXPECT_EQ(job.wait(), 1);
  const double took = job.seconds() - before;
  EXPECT_GT(took, 1);
  EXPECT_LT(took, 10);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "rank");
  EXPECT_HOLDS(job.complaints()[0], std::to_string(GetParam()));
  EXPECT_NO_THROW(train::load_checkpoint(run_files(folder).last(), "mlp"));
}

INSTANTIATE_TEST_SUITE_P(Ranks, FrozenRank, ::testing::Values(0, 1));

// pytorch/pytorch#73547, #76449: ranks build different models, and rank 0 is told as well.
TEST(Ranks, DifferentModelsAreNamed) {
  const TempFolder folder;
  Job job(on_ranks(2, by_rank("[ $RANK = 1 ] && m=small_net || m=mlp; exec \"$@\" --model $m",
                              trainer(folder))));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_LT(job.seconds(), 5);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "--model differs: rank 0=mlp, rank 1=small_net");
}

TEST(Ranks, DifferentFlagsAreNamed) {
  const TempFolder folder;
  Job job(on_ranks(2, by_rank("exec \"$@\" -e $((RANK + 2))", trainer(folder))));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_LT(job.seconds(), 5);
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_HOLDS(job.complaints()[0], "--epochs differs: rank 0=2, rank 1=3");
}

// Every number that all ranks must share is compared, exactly.
TEST(DifferentOptions, AreNamedWhateverTheyAre) {
  for (const std::string flag :
       {"--plateau-factor=0.$((RANK + 1))", "--plateau-patience=$RANK",
        "--bucket-cap-mb=$((RANK + 1))", "--workers=$RANK", "--momentum=0.$RANK",
        "--stop-vote=$([ $RANK = 0 ] && echo any || echo all)",
        "-s $((9007199254740992 + RANK))"}) {
    TempFolder folder;
    Job job(on_ranks(2, by_rank("exec \"$@\" " + flag, trainer(folder))));
    EXPECT_NE(job.wait(20), 0) << flag;
    ASSERT_EQ(job.complaints().size(), 1u) << flag;
    const std::string name = flag.starts_with("-s") ? "--seed_num" : flag.substr(0, flag.find('='));
    EXPECT_NE(job.complaints()[0].find(name), std::string::npos) << job.complaints()[0];
  }
}

TEST(FullStandardOutput, IsAnError) {
  TempFolder folder;
  Job job(Words{"/bin/sh", "-c", "exec \"$@\" > /dev/full", "sh"} + trainer(folder, {"-e", "1"}));
  EXPECT_EQ(job.wait(30), 1);
  ASSERT_EQ(job.complaints().size(), 1u);
  EXPECT_HOLDS(job.complaints()[0], "standard output");
}

// What is printed must not end up in the files that the run writes.
TEST(ClosedStreams, HarmNothing) {
  for (const int ranks : {0, 2}) {
    TempFolder folder;
    const Words command = on_ranks(ranks, trainer(folder, {"-e", "2"}));
    Job job(Words{"/bin/sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"} + command);
    EXPECT_EQ(job.wait(30), 0);
    std::ifstream log(folder / "run/log.jsonl");
    int lines = 0;
    for (std::string line; std::getline(log, line); ++lines)
      EXPECT_TRUE(line.starts_with("{")) << line;
    EXPECT_EQ(lines, 2);
  }
}

TEST(Ranks, AMistakeOfOneRankIsNamedWithTheRank) {
  const TempFolder folder;
  Job job(on_ranks(3, by_rank("[ $RANK = 1 ] && b=0 || b=64; exec \"$@\" -b $b", trainer(folder))));
  EXPECT_EQ(job.wait(), 2);
  EXPECT_LT(job.seconds(), 5);
  EXPECT_EQ(job.complaints(),
            Words{"lockstep-train: rank 1: --batch_size: expected at least 1 but got 0"});
  EXPECT_HOLDS(job.err(), "root cause: rank 1 exit code 2");
}

TEST(Ranks, AnOccupiedPortIsNamed) {
  const TempFolder folder;
  dist::Listener other("127.0.0.1", 0);
  const std::string port = std::to_string(other.port());
  Job launched(on_ranks(2, trainer(folder), {"--master_port", port}));
  EXPECT_NE(launched.wait(), 0);
  EXPECT_HOLDS(launched.err(), port);
  EXPECT_LT(launched.seconds(), 5);
  Job alone(trainer(folder),
            {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port});
  EXPECT_EQ(alone.wait(), 1);
  EXPECT_LT(alone.seconds(), 10);
  ASSERT_EQ(alone.complaints().size(), 1u) << alone.err();
  EXPECT_HOLDS(alone.complaints()[0], port);
  EXPECT_TRUE(folder.entries().empty());
}

TEST(Ranks, ARankOutsideItsWorldIsNamed) {
  const TempFolder folder;
  for (const char* rank : {"2", "-1", "first"}) {
    Job job(trainer(folder), {std::string("RANK=") + rank, "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                              "MASTER_PORT=29500"});
    EXPECT_EQ(job.wait(), 1);
    EXPECT_LT(job.seconds(), 5);
    ASSERT_EQ(job.complaints().size(), 1u) << job.err();
    EXPECT_HOLDS(job.complaints()[0], "RANK");
    EXPECT_HOLDS(job.complaints()[0], rank);
  }
}

// Without a launcher nobody else can say which rank is gone.
TEST(Ranks, WithoutALauncherTheSurvivorNamesTheDead) {
  const TempFolder folder;
  const std::string port = std::to_string(dist::Listener("127.0.0.1", 0).port());
  const auto place = [&](const char* rank) {
    return Words{std::string("RANK=") + rank, "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                 "MASTER_PORT=" + port};
  };
  Job zero(long_run(folder), place("0")), one(long_run(folder), place("1"));
  ASSERT_TRUE(wait_for_saves(zero, run_files(folder).last(), 3)) << zero.err() << one.err();
  one.send(SIGKILL);
  const double before = zero.seconds();
  EXPECT_EQ(one.wait(), 137);
  EXPECT_EQ(zero.wait(), 1);
  EXPECT_LT(zero.seconds() - before, 5);
  ASSERT_EQ(zero.complaints().size(), 1u) << zero.err();
  EXPECT_HOLDS(zero.complaints()[0], "rank 0:");
  EXPECT_HOLDS(zero.complaints()[0], "rank 1");
}

// Ctrl-C by a debugger or a user's kill may reach one rank alone: all stop after the same step.
TEST(Ranks, SigintToRankZeroAloneStopsAll) {
  const TempFolder folder;
  Job job(on_ranks(3, long_run(folder)));
  ASSERT_TRUE(wait_for_saves(job, run_files(folder).last(), 2)) << job.err();
  const pid_t zero = job.rank_pid(0);
  ASSERT_GT(zero, 0);
  const double before = job.seconds();
  ::kill(zero, SIGINT);
  EXPECT_EQ(job.wait(), 130);
  EXPECT_LT(job.seconds() - before, 5);
  EXPECT_HOLDS(job.out(), "stopped on request; go on with --resume " + run_files(folder).last());
  EXPECT_TRUE(job.complaints().empty()) << job.err();
  EXPECT_NO_THROW(train::load_checkpoint(run_files(folder).last(), "mlp"));
}

// A terminated job, as by a batch system at its time limit.
TEST(Ranks, SigtermToTheLauncherIsAWishToStop) {
  const TempFolder folder;
  Job job(on_ranks(2, long_run(folder)));
  ASSERT_TRUE(wait_for_saves(job, run_files(folder).last(), 2)) << job.err();
  job.send(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_HOLDS(job.out(), "stopped on request");
  EXPECT_TRUE(job.complaints().empty()) << job.err();
}

}  // namespace
}  // namespace lockstep::testing
