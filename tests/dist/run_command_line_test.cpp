// The flags of lockstep-run.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "dist/launch_job.h"

namespace lockstep::dist {
namespace {

namespace fs = std::filesystem;

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
      {{"--rdzv-id=../../zz"}, "--rdzv-id '../../zz'"},
      {{"--rdzv-id=.."}, "--rdzv-id"},
      {{"--rdzv-id=.hidden"}, "--rdzv-id"},
      {{"--rdzv-id=a/b"}, "--rdzv-id"},
      {{"--rdzv-id=a b"}, "--rdzv-id"},
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
