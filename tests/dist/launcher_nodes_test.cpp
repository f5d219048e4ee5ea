// Several nodes, and ranks that other launchers started.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "dist/launch_job.h"
#include "lockstep/dist/socket.h"

namespace lockstep::dist {
namespace {

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

}  // namespace
}  // namespace lockstep::dist
