// lockstep-run from outside: what users see when jobs succeed, fail, freeze and are stopped.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

#include "dist/launch_job.h"
#include "lockstep/dist/launch/launch_options.h"
#include "lockstep/dist/socket.h"

namespace lockstep::dist {
namespace {

namespace fs = std::filesystem;

int number_in(const fs::path& path) {
  const string text = text_of(path);
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Not the folders that other tests have there meanwhile.
std::vector<string> segments() {
  std::vector<string> names;
  const string start = "lockstep-" + std::to_string(getuid()) + "-";
  for (const auto& entry : fs::directory_iterator("/dev/shm"))
    if (const string name = entry.path().filename(); name.starts_with(start)) names.push_back(name);
  return names;
}

TEST(Launcher, StartsAllRanksWithTheirPlaces) {
  TempFolder folder;
  Program run(job({"--nproc_per_node=3"}, worker("meet", folder.path())));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(text_of(folder / "0"), "0 3 0 3 0 0\n");
  EXPECT_EQ(text_of(folder / "1"), "1 3 1 3 0 0\n");
  EXPECT_EQ(text_of(folder / "2"), "2 3 2 3 0 0\n");
  EXPECT_EQ(run.out(), "");
}

// Two jobs on one host without a word about ports (pytorch/pytorch#73320).
TEST(Launcher, TwoJobsAtOnceNeedNoPorts) {
  Program a(job({"--nproc-per-node", "2"}, worker("meet")));
  Program b(job({"--nproc-per-node", "2", "--standalone"}, worker("meet")));
  EXPECT_EQ(a.wait(), 0) << a.err();
  EXPECT_EQ(b.wait(), 0) << b.err();
}

// Errno 98 has to say which port, at once (pytorch/pytorch#126510).
TEST(Launcher, AnOccupiedPortIsNamedAndNoWorkerStarts) {
  Listener other("127.0.0.1", 0);
  TempFolder folder;
  const string port = std::to_string(other.port());
  Program run(job({"--nproc-per-node=2", "--master-port", port},
                  shell("touch " + folder.path() + "/$RANK")));
  EXPECT_NE(run.wait(), 0);
  EXPECT_LT(run.seconds(), 2);
  EXPECT_TRUE(holds(run.err(), port)) << run.err();
  EXPECT_TRUE(folder.entries().empty());
}

TEST(Launcher, AFreePortIsUsedAsAsked) {
  const string port = std::to_string(Listener("127.0.0.1", 0).port());
  Program run(job({"--master_port=" + port}, shell("echo $MASTER_ADDR:$MASTER_PORT")));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "127.0.0.1:" + port + "\n");
}

// Two workers that both act as rank 0 (meta-pytorch/torchtune#392).
TEST(Launcher, ARankClaimedTwiceEndsTheJob) {
  Program run(
      job({"--nproc-per-node=2"}, {"sh", "-c", "RANK=0 exec \"$0\" meet", LOCKSTEP_LAUNCH_WORKER}));
  EXPECT_NE(run.wait(), 0);
  EXPECT_TRUE(holds(run.err(), "rank 0 claimed twice")) << run.err();
  EXPECT_LT(run.seconds(), 5);
}

// One rank dies, the others wait for it (pytorch/pytorch#17113).
TEST(Launcher, AKilledRankIsNamedAndTheOthersEnd) {
  const std::vector<string> before = segments();
  Program run(job({"--nproc-per-node=4"}, worker("kill-2")));
  EXPECT_EQ(run.wait(), 137);
  EXPECT_LT(run.seconds(), 5);
  EXPECT_TRUE(holds(run.err(), "rank 2 signal 9 (SIGKILL)")) << run.err();
  EXPECT_EQ(segments(), before);
}

TEST(Launcher, AnExitCodeIsHandedOn) {
  Program run(job({"--nproc-per-node=2"}, shell("[ $RANK = 0 ] || exit 23; sleep 60")));
  EXPECT_EQ(run.wait(), 23);
  const string err = run.err(), cause = "rank 1 exit code 23";
  EXPECT_TRUE(holds(err, "root cause: " + cause)) << err;
  EXPECT_EQ(err.find(cause), err.rfind(cause)) << "said twice: " << err;
  EXPECT_LT(run.seconds(), 5);
}

TEST(Launcher, AFrozenRankIsEndedToo) {
  Program run(job({"--nproc-per-node=3"}, worker("stop-1")));
  EXPECT_EQ(run.wait(), 7);
  EXPECT_TRUE(holds(run.err(), "rank 0 exit code 7")) << run.err();
  EXPECT_LT(run.seconds(), 5);
}

TEST(Launcher, ARankThatIgnoresSigtermIsKilledAfterTheGrace) {
  Program run(job({"--nproc-per-node=2", "--failure-grace=0.2"}, worker("stubborn", "fail")));
  EXPECT_EQ(run.wait(), 5);
  EXPECT_LT(run.seconds(), 5);
}

TEST(Launcher, WhatWorkersStartedEndsWithThem) {
  TempFolder folder;
  const string script = "sleep 600 & echo $! > " + folder.path() +
                        "/near; setsid sleep 600 & echo $! > " + folder.path() +
                        "/far; env -i setsid sleep 600 & echo $! > " + folder.path() + "/bare; ";
  for (const string end : {"exit 0", "exit 4"}) {
    Program run(job({}, shell(script + end)));
    EXPECT_EQ(run.wait(), end == "exit 0" ? 0 : 4) << run.err();
    for (const char* name : {"near", "far", "bare"}) {
      const int pid = number_in(folder / name);
      EXPECT_GT(pid, 0);
      EXPECT_FALSE(is_alive(pid)) << name << " after " << end;
    }
  }
}

TEST(Launcher, WorkersDieWithAKilledLauncher) {
  TempFolder folder;
  Program run(job({"--nproc-per-node=2"},
                  shell("echo $$ > " + folder.path() + "/$RANK.tmp; mv " + folder.path() +
                        "/$RANK.tmp " + folder.path() + "/$RANK; exec sleep 600")));
  ASSERT_TRUE(eventually([&] { return folder.entries() == std::vector<string>{"0", "1"}; }));
  run.send(SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  for (const char* name : {"0", "1"}) {
    const int pid = number_in(folder / name);
    EXPECT_TRUE(pid > 0 && eventually([&] { return !is_alive(pid); })) << name;
  }
}

TEST(Launcher, CtrlCReachesAllRanks) {
  TempFolder folder;
  const string script = "trap 'echo ended > " + folder.path() +
                        "/$RANK; exit 0' INT; echo up; while :; do sleep 0.02; done";
  Program run(job({"--nproc-per-node=2"}, shell(script)));
  ASSERT_TRUE(eventually([&] { return run.out() == "up\nup\n"; }));
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_EQ(folder.entries(), (std::vector<string>{"0", "1"}));
}

TEST(Launcher, ASecondCtrlCKills) {
  Program run(job({"--nproc-per-node=2"}, worker("stubborn")));
  ASSERT_TRUE(eventually([&] { return run.out() == "ready\n"; })) << run.err();
  run.send(SIGINT);
  ASSERT_TRUE(eventually([&] { return holds(run.err(), "SIGINT"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(is_alive(run.pid()));
  const double second = run.seconds();
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 130);
  EXPECT_LT(run.seconds() - second, 5);
}

TEST(Launcher, OtherSignalsArePassedOn) {
  TempFolder folder;
  const string script = "trap 'echo usr1; exit 0' USR1; echo up; while :; do sleep 0.02; done";
  Program run(job({}, shell(script)));
  ASSERT_TRUE(eventually([&] { return run.out() == "up\n"; }));
  run.send(SIGUSR1);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "up\nusr1\n");
}

// Rank 0 leaves before the rest (pytorch/pytorch#123969).
TEST(Launcher, RankZeroMayLeaveFirst) {
  Program run(job({"--nproc-per-node=3"}, worker("rank0-first")));
  EXPECT_EQ(run.wait(), 0);
  const string err = run.err();
  EXPECT_EQ(std::ranges::count(err, '\n'), 1) << err;  // the header only
}

TEST(Launcher, RestartsAllRanksUntilTheyComeThrough) {
  Program run(job({"--nproc-per-node=2", "--max-restarts=2"}, worker("fail-once")));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(holds(run.err(), "rank 1 exit code 3")) << run.err();
  EXPECT_TRUE(holds(run.err(), "restart 1 of 2")) << run.err();
  EXPECT_FALSE(holds(run.err(), "restart 2")) << run.err();
}

TEST(Launcher, GivesUpAfterTheLastRestart) {
  Program run(job({"--max_restarts=2"}, shell("echo $TORCHELASTIC_RESTART_COUNT; exit 6")));
  EXPECT_EQ(run.wait(), 6);
  EXPECT_EQ(run.out(), "0\n1\n2\n");
}

TEST(Launcher, SharesTheCoresAmongRanks) {
  const int cores = allowed_cores();
  const string share = std::to_string(std::max(1, cores / 2));
  Program run(job({"--nproc-per-node=2"}, shell("echo $OMP_NUM_THREADS")));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), share + "\n" + share + "\n");
  Program own(job({"--nproc-per-node=2"}, shell("echo $OMP_NUM_THREADS")), {"OMP_NUM_THREADS=5"});
  EXPECT_EQ(own.wait(), 0);
  EXPECT_EQ(own.out(), "5\n5\n");
}

}  // namespace
}  // namespace lockstep::dist
