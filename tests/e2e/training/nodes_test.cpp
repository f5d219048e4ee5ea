// Two nodes, simulated by two launchers on this host.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "e2e/training/train_job.h"
#include "lockstep/dist/socket.h"
#include "lockstep/train/checkpoint.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

class TwoNodes {
 public:
  explicit TwoNodes(const Words& command)
      : port_(std::to_string(dist::Listener("127.0.0.1", 0).port())),
        first(node("0", command)),
        second(node("1", command)) {}

 private:
  Words node(const char* number, const Words& command) const {
    return on_ranks(2, command,
                    {"--nnodes=2", "--node-rank", number, "--master-addr=127.0.0.1",
                     "--master-port", port_, "--join-timeout=30"});
  }

  std::string port_;

 public:
  Job first, second;
};

// NVIDIA/apex#886: each node's local rank 0 saved into one path.
TEST(Nodes, OnlyTheJobsRankZeroWrites) {
  const TempFolder folder;
  // Each rank is given a folder of its own; three of them must stay away.
  TwoNodes nodes(by_rank("exec \"$@\" -p '" + folder.path() + "/'$RANK", trainer(folder)));
  EXPECT_EQ(nodes.first.wait(), 0) << nodes.first.err();
  EXPECT_EQ(nodes.second.wait(), 0) << nodes.second.err();
  EXPECT_EQ(folder.entries(), Words{"0"});
  EXPECT_EQ(nodes.second.out(), "");
  EXPECT_EQ(nlohmann::json::parse(read_bytes(folder / "0/run/summary.json")).at("world_size"), 4);
  // Node or process, the sums are the same.
  const TempFolder one_node;
  run_well(on_ranks(4, trainer(one_node)));
  EXPECT_TRUE(read_bytes(folder / "0/run/last.safetensors") ==
              read_bytes(run_files(one_node).last()));
}

bool is_being_written(const RunFiles& files) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(files.path, ignored))
    if (entry.path().filename().string().starts_with(".last.safetensors.")) return true;
  return false;
}

TEST(Nodes, AWriterKilledInTheMidstLeavesAWholeFile) {
  for (int round = 0; round < 3; ++round) {
    const TempFolder folder;
    const RunFiles files = run_files(folder);
    TwoNodes nodes(trainer(folder, {"-e", "5000", "--stop-patience=5000", "--save-every", "1"}));
    ASSERT_TRUE(wait_for_saves(nodes.first, files.last(), 2 + round)) << nodes.first.err();
    const pid_t writer = nodes.first.rank_pid(0);
    ASSERT_GT(writer, 0);
    ASSERT_TRUE(dist::eventually([&] { return is_being_written(files); }));
    ::kill(writer, SIGKILL);
    EXPECT_EQ(nodes.first.wait(), 137);
    EXPECT_NE(nodes.second.wait(), 0);
    EXPECT_HOLDS(nodes.first.err(), "rank 0 signal 9 (SIGKILL)");
    EXPECT_NO_THROW(train::load_checkpoint(files.last(), "mlp"));
    if (fs::exists(files.best())) {
      EXPECT_NO_THROW(train::load_checkpoint(files.best(), "mlp"));
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
