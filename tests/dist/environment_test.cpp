// What the environment of each launcher means, and what is wrong with a bad one.
#include "lockstep/dist/environment.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::dist {
namespace {

using Variables = std::map<std::string, std::string>;

Environment read(const Variables& variables) {
  return read_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  });
}

std::string complaint(const Variables& variables) {
  try {
    read(variables);
  } catch (const Error& e) {
    return e.what();
  }
  return "no complaint";
}

TEST(Environment, NothingSetIsAWorldOfOne) {
  const Environment e = read({});
  EXPECT_EQ(e.rank, 0);
  EXPECT_EQ(e.world_size, 1);
  EXPECT_EQ(e.local_world_size, 1);
  EXPECT_FALSE(e.launched);
  EXPECT_EQ(read({{"RANK", ""}, {"WORLD_SIZE", ""}}).world_size, 1);
}

TEST(Environment, TorchrunsVariables) {
  const Environment e = read({{"RANK", "5"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"GROUP_RANK", "1"},
                              {"MASTER_ADDR", "node7"},
                              {"MASTER_PORT", "29500"},
                              {"LOCKSTEP_JOB_ID", "j1"},
                              {"LOCKSTEP_STORE_HOSTED", "1"},
                              {"LOCKSTEP_INTERFACE", "eth1"},
                              {"TORCHELASTIC_RESTART_COUNT", "2"},
                              {"TORCHELASTIC_MAX_RESTARTS", "3"},
                              {"OMPI_COMM_WORLD_RANK", "0"},
                              {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(e.rank, 5);
  EXPECT_EQ(e.world_size, 8);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.local_world_size, 4);
  EXPECT_EQ(e.group_rank, 1);
  EXPECT_EQ(e.master_addr, "node7");
  EXPECT_EQ(e.master_port, 29500);
  EXPECT_EQ(e.port_span, 1);
  EXPECT_EQ(e.job_id, "j1");
  EXPECT_EQ(e.interface, "eth1");
  EXPECT_TRUE(e.launched);
  EXPECT_TRUE(e.store_hosted);
  EXPECT_EQ(e.restart_count, 2);
  EXPECT_EQ(e.max_restarts, 3);
}

TEST(Environment, RankAndWorldAloneAreEnough) {
  const Environment e = read({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(e.local_rank, 2);
  EXPECT_EQ(e.local_world_size, 4);
  EXPECT_EQ(e.group_rank, 0);
}

TEST(Environment, NodeOfARankFollowsFromTheLocalWorld) {
  const Environment e = read({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}});
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.group_rank, 1);
}

TEST(Environment, OpenMpiOnOneNode) {
  const Variables variables = {{"OMPI_COMM_WORLD_RANK", "3"},
                               {"OMPI_COMM_WORLD_SIZE", "4"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                               {"PMIX_NAMESPACE", "12345"}};
  const Environment e = read(variables);
  EXPECT_EQ(e.rank, 3);
  EXPECT_EQ(e.local_world_size, 4);
  EXPECT_GT(e.master_port, 0);
  EXPECT_GT(e.port_span, 1);
  EXPECT_EQ(e.master_port, read(variables).master_port);
  Variables other = variables;
  other["PMIX_NAMESPACE"] = "12346";
  EXPECT_NE(read(other).job_id, e.job_id);
}

TEST(Environment, OpenMpiOverNodesWantsTheMastersAddress) {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_NE(complaint(variables).find("MASTER_ADDR"), std::string::npos);
  variables["MASTER_ADDR"] = "10.0.0.1";
  EXPECT_EQ(read(variables).master_addr, "10.0.0.1");
}

TEST(Environment, SlurmStep) {
  const Environment e = read({{"SLURM_PROCID", "6"},
                              {"SLURM_NTASKS", "7"},
                              {"SLURM_LOCALID", "0"},
                              {"SLURM_NODEID", "3"},
                              {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                              {"SLURM_STEP_NODELIST", "gpu[003-005,9].site,spare1"},
                              {"SLURM_JOB_ID", "77"},
                              {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(e.rank, 6);
  EXPECT_EQ(e.world_size, 7);
  EXPECT_EQ(e.group_rank, 3);
  EXPECT_EQ(e.local_world_size, 1);
  EXPECT_EQ(e.master_addr, "gpu003.site");
  EXPECT_EQ(e.job_id, "slurm-77-0");
  // An allocation's shell is no step: its processes are worlds of one.
  EXPECT_EQ(read({{"SLURM_NTASKS", "8"}}).world_size, 1);
}

TEST(Environment, SlurmNodeListsWithoutBrackets) {
  const auto master = [](const std::string& list) {
    return read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_NODELIST", list}})
        .master_addr;
  };
  EXPECT_EQ(master("alpha,beta"), "alpha");
  EXPECT_EQ(master("alpha"), "alpha");
  EXPECT_EQ(master("n[7]"), "n7");
  EXPECT_THROW(master("n[7"), Error);
}

TEST(Environment, UnderTorchrunItsOwnStoreHoldsThePort) {
  const Environment e = read({{"RANK", "0"},
                              {"WORLD_SIZE", "2"},
                              {"MASTER_PORT", "29500"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"TORCHELASTIC_RUN_ID", "r"}});
  EXPECT_NE(e.master_port, 29500);
  EXPECT_GT(e.port_span, 1);
  EXPECT_FALSE(e.job_id.empty());
}

TEST(Environment, BadValuesAreNamed) {
  struct Case {
    Variables variables;
    std::string name;
  };
  const std::vector<Case> cases = {
      {{{"RANK", "0"}}, "WORLD_SIZE"},
      {{{"WORLD_SIZE", "2"}}, "RANK"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK=2"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK"},
      {{{"RANK", "one"}, {"WORLD_SIZE", "2"}}, "RANK='one'"},
      {{{"RANK", "0x1"}, {"WORLD_SIZE", "2"}}, "RANK"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2 "}}, "WORLD_SIZE"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "99999999999999999999"}}, "WORLD_SIZE"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "x"}}, "LOCAL_RANK"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}},
       "LOCAL_RANK"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}}, "LOCAL_WORLD_SIZE"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"GROUP_RANK", "-2"}}, "GROUP_RANK"},
      {{{"MASTER_PORT", "0"}}, "MASTER_PORT"},
      {{{"MASTER_PORT", "65536"}}, "MASTER_PORT"},
      {{{"MASTER_PORT", "http"}}, "MASTER_PORT"},
      {{{"LOCKSTEP_STORE_HOSTED", "yes"}}, "LOCKSTEP_STORE_HOSTED"},
      {{{"TORCHELASTIC_RESTART_COUNT", "-1"}}, "TORCHELASTIC_RESTART_COUNT"},
      {{{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, "OMPI_COMM_WORLD_RANK"},
      {{{"SLURM_PROCID", "0"}}, "SLURM_NTASKS"},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "2(y3)"}},
       "SLURM_STEP_TASKS_PER_NODE"},
  };
  for (const Case& c : cases) {
    const std::string text = complaint(c.variables);
    EXPECT_NE(text.find(c.name), std::string::npos) << "wanted " << c.name << ", got: " << text;
  }
}

}  // namespace
}  // namespace lockstep::dist
