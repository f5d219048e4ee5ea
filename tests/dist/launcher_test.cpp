// lockstep-run from outside: what users see when jobs succeed, fail, freeze and are stopped.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dist/run_program.h"
#include "lockstep/dist/launch/launch_options.h"
#include "lockstep/dist/socket.h"

namespace lockstep::dist {
namespace {

namespace fs = std::filesystem;
using lockstep::testing::TempFolder;
using std::string;

std::vector<string> job(std::vector<string> flags, std::vector<string> command) {
  std::vector<string> all = {LOCKSTEP_RUN_PROGRAM};
  all.insert(all.end(), flags.begin(), flags.end());
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

std::vector<string> worker(const string& mode, const string& argument = "") {
  return {LOCKSTEP_LAUNCH_WORKER, mode, argument};
}

std::vector<string> shell(const string& script) { return {"sh", "-c", script}; }

bool holds(const string& text, const string& part) { return text.find(part) != string::npos; }

int number_in(const fs::path& path) {
  const string text = text_of(path);
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<string> segments() {
  std::vector<string> names;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    const string name = entry.path().filename();
    if (name.starts_with("lockstep-")) names.push_back(name);
  }
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
  EXPECT_TRUE(holds(run.err(), "rank 1 exit code 23")) << run.err();
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

std::vector<string> files_below(const fs::path& folder) {
  std::vector<string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    fs::path rest;
    const fs::path relative = fs::relative(entry.path(), folder);
    for (auto part = std::next(relative.begin()); part != relative.end(); ++part) rest /= *part;
    found.push_back(rest.string() + "=" + text_of(entry.path()));
  }
  std::ranges::sort(found);
  return found;
}

TEST(Launcher, TeeAndRedirectsWriteFiles) {
  TempFolder folder;
  Program run(job({"--nproc-per-node=3", "--tee", "0:1,1:2", "-r", "1:1,2:3", "--log-dir",
                   folder.path(), "--rdzv-id=exp"},
                  shell("echo out$RANK; echo err$RANK >&2; printf last")));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(holds(folder.entries().at(0), "exp_"));
  EXPECT_EQ(
      files_below(folder.path()),
      (std::vector<string>{"attempt_0/0/stdout.log=out0\nlast", "attempt_0/1/stderr.log=err1\n",
                           "attempt_0/1/stdout.log=out1\nlast", "attempt_0/2/stderr.log=err2\n",
                           "attempt_0/2/stdout.log=out2\nlast"}));
  EXPECT_EQ(run.out(), "[default0]:out0\n[default0]:last\n");
  EXPECT_TRUE(holds(run.err(), "[default1]:err1\n")) << run.err();
  EXPECT_TRUE(holds(run.err(), "err0\n"));
  EXPECT_FALSE(holds(run.err(), "err2"));
}

TEST(Launcher, TheFilterHidesOtherRanksOnTheConsoleOnly) {
  TempFolder folder;
  Program run(
      job({"--nproc-per-node=3", "--local-ranks-filter=1", "--tee=2:3", "--log-dir", folder.path()},
          shell("echo out$RANK")));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "out1\n");
  EXPECT_EQ(files_below(folder.path()),
            (std::vector<string>{"attempt_0/2/stderr.log=", "attempt_0/2/stdout.log=out2\n"}));
}

TEST(Launcher, AConsoleThatNobodyReadsDoesNotHoldUpTheEnd) {
  TempFolder folder;
  // The inner launcher's stdout is a pipe whose reader sleeps.
  const string inner =
      string(LOCKSTEP_RUN_PROGRAM) + " --tee=1 --log-dir=" + folder.path() +
      " sh -c 'i=0; while [ $i -lt 1500 ]; do echo 0123456789012345678901234567890123456789; "
      "i=$((i+1)); done; exit 9'; echo $? > " +
      folder.path() + "/code";
  Program run({"sh", "-c", "{ " + inner + "; } | sleep 3"});
  EXPECT_TRUE(eventually([&] { return text_of(folder / "code") == "9\n"; }));
  EXPECT_LT(run.seconds(), 2.9);
  run.wait();
}

std::vector<string> node(int rank, int port, std::vector<string> more,
                         std::vector<string> command) {
  std::vector<string> flags = {"--nnodes=2", "--node-rank=" + std::to_string(rank),
                               "--nproc-per-node=2", "--master-addr=127.0.0.1",
                               "--master-port=" + std::to_string(port)};
  flags.insert(flags.end(), more.begin(), more.end());
  return job(flags, std::move(command));
}

TEST(Launcher, TwoNodesAreOneWorld) {
  TempFolder folder;
  const int port = Listener("127.0.0.1", 0).port();
  Program second(node(1, port, {}, worker("meet", folder.path())));
  Program first(node(0, port, {}, worker("meet", folder.path())));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(text_of(folder / "0"), "0 4 0 2 0 0\n");
  EXPECT_EQ(text_of(folder / "3"), "3 4 1 2 1 0\n");
}

TEST(Launcher, AFailureOnOneNodeEndsBoth) {
  const int port = Listener("127.0.0.1", 0).port();
  Program first(node(0, port, {}, worker("fail-on-node-1")));
  Program second(node(1, port, {}, worker("fail-on-node-1")));
  EXPECT_EQ(first.wait(), 9) << first.err();
  EXPECT_EQ(second.wait(), 9) << second.err();
  EXPECT_LT(first.seconds(), 6);
  EXPECT_TRUE(holds(first.err(), "exit code 9")) << first.err();
}

TEST(Launcher, NodesRestartTogether) {
  const int port = Listener("127.0.0.1", 0).port();
  Program first(node(0, port, {"--max-restarts=1"}, worker("fail-once")));
  Program second(node(1, port, {"--max-restarts=1"}, worker("fail-once")));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_TRUE(holds(second.err(), "restart 1 of 1")) << second.err();
}

TEST(Launcher, AMissingNodeIsNamed) {
  const int port = Listener("127.0.0.1", 0).port();
  Program first(node(0, port, {"--join-timeout=0.3"}, {"true"}));
  EXPECT_EQ(first.wait(), 1);
  EXPECT_TRUE(holds(first.err(), "nodes [1]")) << first.err();
}

TEST(Launcher, NodesOfDifferentShapesAreRefused) {
  const int port = Listener("127.0.0.1", 0).port();
  Program first(node(0, port, {"--join-timeout=5"}, {"true"}));
  Program second(node(1, port, {"--join-timeout=5", "--max-restarts=3"}, {"true"}));
  EXPECT_TRUE(eventually([&] { return holds(first.err() + second.err(), "--max-restarts 3"); }))
      << first.err() << second.err();
  first.send(SIGKILL);
  second.send(SIGKILL);
  first.wait();
  second.wait();
}

TEST(OtherLaunchers, MpirunsRanksMeet) {
  TempFolder folder;
  if (std::system("mpirun --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun here";
  Program run({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3",
               LOCKSTEP_LAUNCH_WORKER, "meet", folder.path()});
  EXPECT_EQ(run.wait(60), 0) << run.err();
  EXPECT_EQ(text_of(folder / "2"), "2 3 2 3 0 0\n");
}

// What srun would set; no port is given, the ranks find each other by the job's name.
TEST(OtherLaunchers, TwoSlurmJobsOnOneHostDoNotMeet) {
  TempFolder folders[2];
  std::vector<std::unique_ptr<Program>> tasks;
  for (int job = 0; job < 2; ++job) {
    for (int task = 1; task >= 0; --task) {
      const std::vector<string> env = {"SLURM_JOB_ID=" + std::to_string(::getpid()),
                                       "SLURM_STEP_ID=" + std::to_string(job),
                                       "SLURM_PROCID=" + std::to_string(task),
                                       "SLURM_LOCALID=" + std::to_string(task),
                                       "SLURM_NTASKS=2",
                                       "SLURM_STEP_TASKS_PER_NODE=2",
                                       "SLURM_NODEID=0",
                                       "SLURM_STEP_NODELIST=localhost"};
      tasks.push_back(std::make_unique<Program>(worker("meet", folders[job].path()), env));
    }
  }
  for (auto& task : tasks) EXPECT_EQ(task->wait(), 0) << task->err();
  for (const TempFolder& folder : folders) {
    EXPECT_EQ(text_of(folder / "0"), "0 2 0 2 0 0\n");
    EXPECT_EQ(text_of(folder / "1"), "1 2 1 2 0 0\n");
  }
}

TEST(CommandLine, BadFlagsAreNamedWithoutStartingAnything) {
  struct Case {
    std::vector<string> flags;
    string wanted;
  };
  const std::vector<Case> cases = {
      {{"--nproc-per-node=0"}, "nproc-per-node"},
      {{"--nproc-per-node=two"}, "'two'"},
      {{"--nproc_per_node=gpu"}, "gpu"},
      {{"--nnodes=1:4"}, "1:4"},
      {{"--nnodes=x"}, "nnodes"},
      {{"--node-rank=3"}, "node-rank"},
      {{"--node-rank=x"}, "node-rank"},
      {{"--master-port=0"}, "master-port"},
      {{"--master-port=70000"}, "70000"},
      {{"--master-port=http"}, "master-port"},
      {{"--max-restarts=-1"}, "max-restarts"},
      {{"--monitor-interval=-1"}, "monitor-interval"},
      {{"--monitor-interval=nan"}, "monitor-interval"},
      {{"--tee=5"}, "--tee"},
      {{"-r", "9:1"}, "--redirects"},
      {{"--local-ranks-filter=4"}, "local-ranks-filter"},
      {{"--local-ranks-filter=a"}, "local-ranks-filter"},
      {{"--rdzv-backend=etcd"}, "etcd"},
      {{"--standalone", "--nnodes=2"}, "standalone"},
      {{"--module", "--no-python"}, "no-python"},
      {{"--run-path"}, "run-path"},
      {{"--no-such-flag"}, "no-such-flag"},
  };
  TempFolder folder;
  for (const Case& c : cases) {
    Program run(job(c.flags, shell("touch " + folder.path() + "/started")));
    EXPECT_EQ(run.wait(), 2) << c.wanted;
    EXPECT_TRUE(holds(run.err(), c.wanted)) << "wanted " << c.wanted << ", got " << run.err();
  }
  Program nothing(job({}, {}));
  EXPECT_EQ(nothing.wait(), 2);
  EXPECT_TRUE(folder.entries().empty());
}

TEST(CommandLine, TheProgramsOwnFlagsAreItsOwn) {
  Program run(job({"--nproc-per-node=1"}, {"echo", "--nproc-per-node", "7", "-t", "--", "x"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "--nproc-per-node 7 -t -- x\n");
}

TEST(CommandLine, FlagsMayComeFromTheEnvironment) {
  Program run(job({}, shell("echo $WORLD_SIZE")), {"PET_NPROC_PER_NODE=2"});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "2\n2\n");
}

TEST(CommandLine, PythonScriptsAndModules) {
  TempFolder folder;
  lockstep::testing::write_bytes(folder / "script.py", "#!/bin/sh\necho direct $1\n");
  lockstep::testing::write_bytes(folder / "python", "#!/bin/sh\necho python \"$@\"\n");
  for (const char* name : {"script.py", "python"}) {
    fs::permissions(folder / name, fs::perms::owner_all);
  }
  const std::vector<string> env = {"PYTHON_EXEC=" + (folder / "python")};
  Program script(job({}, {folder / "script.py", "a"}), env);
  EXPECT_EQ(script.wait(), 0) << script.err();
  EXPECT_EQ(script.out(), "python -u " + (folder / "script.py") + " a\n");
  Program direct(job({"--no-python"}, {folder / "script.py", "a"}), env);
  EXPECT_EQ(direct.wait(), 0) << direct.err();
  EXPECT_EQ(direct.out(), "direct a\n");
  Program module(job({"-m"}, {"pkg.train", "a"}), env);
  EXPECT_EQ(module.wait(), 0) << module.err();
  EXPECT_EQ(module.out(), "python -u -m pkg.train a\n");
}

TEST(CommandLine, AProgramThatDoesNotExistIsNamed) {
  Program run(job({"--nproc-per-node=2"}, {"no-such-program-here"}));
  EXPECT_EQ(run.wait(), 1);
  EXPECT_TRUE(holds(run.err(), "no-such-program-here")) << run.err();
}

TEST(CommandLine, HelpIsNoError) {
  Program run({LOCKSTEP_RUN_PROGRAM, "--help"});
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(holds(run.out(), "--nproc_per_node"));
}

}  // namespace
}  // namespace lockstep::dist
