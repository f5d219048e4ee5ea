// The launcher's pure parts: stream lists, worker counts, validation, workers' environments.
#include "lockstep/dist/launch/launch_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/dist/launch/worker_environment.h"

namespace lockstep::dist {
namespace {

TEST(StreamPlan, OneNumberIsForAllRanks) {
  const StreamPlan plan = StreamPlan::parse("--tee", "3");
  EXPECT_EQ(plan.of(0), Streams::kBoth);
  EXPECT_EQ(plan.of(7), Streams::kBoth);
  EXPECT_FALSE(StreamPlan::parse("--tee", "0").any());
}

TEST(StreamPlan, AListNamesRanks) {
  const StreamPlan plan = StreamPlan::parse("--tee", "0:1,1:2");
  EXPECT_EQ(plan.of(0), Streams::kStdout);
  EXPECT_EQ(plan.of(1), Streams::kStderr);
  EXPECT_EQ(plan.of(2), Streams::kNone);
  EXPECT_TRUE(plan.any());
  EXPECT_EQ(plan.max_rank(), 1);
}

TEST(StreamPlan, NonsenseIsRefusedByTheFlagsName) {
  for (const char* text :
       {"", "4", "-1", "x", "0:4", "0:", ":1", "0:1,", "0:1,0:2", "0:1;1:2", "1:1,2", "0:1:2"}) {
    try {
      StreamPlan::parse("--tee", text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("--tee"), std::string::npos) << e.what();
    }
  }
}

TEST(ResolveNproc, NumbersAndWords) {
  EXPECT_EQ(resolve_nproc("4", 2), 4);
  EXPECT_EQ(resolve_nproc("auto", 6), 6);
  EXPECT_EQ(resolve_nproc("cpu", 6), 6);
  EXPECT_GE(allowed_cores(), 1);
  for (const char* text : {"", "0", "-1", "2x", "gpu", "xpu", "1.5", "99999999999"}) {
    EXPECT_THROW(resolve_nproc(text, 2), Error) << text;
  }
}

LaunchOptions valid_options() {
  LaunchOptions o;
  o.command = {"true"};
  o.nproc_per_node = 2;
  return o;
}

TEST(Validate, NamesTheFlag) {
  EXPECT_NO_THROW(validate(valid_options()));
  const auto complaint = [](auto change) -> std::string {
    LaunchOptions o = valid_options();
    change(o);
    try {
      validate(o);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  const auto names = [&](const char* flag, auto change) {
    const std::string text = complaint(change);
    EXPECT_NE(text.find(flag), std::string::npos) << text;
  };
  names("program", [](LaunchOptions& o) { o.command.clear(); });
  names("--nproc-per-node", [](LaunchOptions& o) { o.nproc_per_node = 0; });
  names("--nproc-per-node", [](LaunchOptions& o) { o.nproc_per_node = 513; });
  names("--nnodes", [](LaunchOptions& o) { o.nnodes = 0; });
  names("--node-rank", [](LaunchOptions& o) { o.node_rank = 1; });
  names("--master-port", [](LaunchOptions& o) { o.master_port = 65536; });
  names("--master-port", [](LaunchOptions& o) { o.nnodes = 2; });
  names("--max-restarts", [](LaunchOptions& o) { o.max_restarts = -1; });
  names("--monitor-interval", [](LaunchOptions& o) { o.monitor_interval = Duration(0); });
  names("--tee", [](LaunchOptions& o) { o.tee = StreamPlan::parse("--tee", "2:1"); });
  names("--redirects", [](LaunchOptions& o) { o.redirects = StreamPlan::parse("-r", "5:1"); });
  names("--local-ranks-filter", [](LaunchOptions& o) { o.local_ranks_filter = {2}; });
}

std::string value_of(const std::vector<std::string>& block, const std::string& name) {
  for (const std::string& entry : block) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return "unset";
}

TEST(WorkerEnvironment, HasTorchrunsVariables) {
  LaunchOptions o = valid_options();
  o.nnodes = 3;
  o.node_rank = 1;
  o.max_restarts = 4;
  o.run_id = "exp";
  o.master_addr = "10.1.2.3";
  const RoundFacts facts{"job", "launch", 4711, 2};
  const std::vector<std::string> block =
      worker_environment({"PATH=/bin", "RANK=77", "EQ=a=b"}, o, facts, 1);
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"RANK", "3"},
      {"LOCAL_RANK", "1"},
      {"WORLD_SIZE", "6"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"},
      {"GROUP_WORLD_SIZE", "3"},
      {"ROLE_RANK", "3"},
      {"ROLE_WORLD_SIZE", "6"},
      {"ROLE_NAME", "default"},
      {"MASTER_ADDR", "10.1.2.3"},
      {"MASTER_PORT", "4711"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_MAX_RESTARTS", "4"},
      {"TORCHELASTIC_RUN_ID", "exp"},
      {"LOCKSTEP_JOB_ID", "job"},
      {"LOCKSTEP_STORE_HOSTED", "1"},
      {"LOCKSTEP_LAUNCH_ID", "launch"},
      {"PATH", "/bin"},
      {"EQ", "a=b"},
      {"OMP_NUM_THREADS", "unset"}};
  for (const auto& [name, value] : wanted) EXPECT_EQ(value_of(block, name), value) << name;
  EXPECT_EQ(std::ranges::count_if(block, [](const auto& e) { return e.starts_with("RANK="); }), 1);
}

TEST(WorkerEnvironment, TheUsersThreadCountStays) {
  LaunchOptions o = valid_options();
  o.omp_threads = 4;
  EXPECT_EQ(value_of(worker_environment({}, o, {}, 0), "OMP_NUM_THREADS"), "4");
  EXPECT_EQ(value_of(worker_environment({"OMP_NUM_THREADS=7"}, o, {}, 0), "OMP_NUM_THREADS"), "7");
}

}  // namespace
}  // namespace lockstep::dist
