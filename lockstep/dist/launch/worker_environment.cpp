#include "lockstep/dist/launch/worker_environment.h"

#include <map>

namespace lockstep::dist {

std::vector<std::string> worker_environment(const std::vector<std::string>& base,
                                            const LaunchOptions& options, const RoundFacts& facts,
                                            int local_rank) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : base) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  const std::string rank = std::to_string(options.node_rank * options.nproc_per_node + local_rank);
  const std::string world = std::to_string(options.nnodes * options.nproc_per_node);
  variables["RANK"] = variables["ROLE_RANK"] = rank;
  variables["WORLD_SIZE"] = variables["ROLE_WORLD_SIZE"] = world;
  variables["LOCAL_RANK"] = std::to_string(local_rank);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(options.nproc_per_node);
  variables["GROUP_RANK"] = std::to_string(options.node_rank);
  variables["GROUP_WORLD_SIZE"] = std::to_string(options.nnodes);
  variables["ROLE_NAME"] = options.role;
  variables["MASTER_ADDR"] = options.master_addr;
  variables["MASTER_PORT"] = std::to_string(facts.master_port);
  variables["TORCHELASTIC_RESTART_COUNT"] = std::to_string(facts.restart_count);
  variables["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(options.max_restarts);
  variables["TORCHELASTIC_RUN_ID"] = options.run_id;
  variables["LOCKSTEP_JOB_ID"] = facts.job_id;
  variables["LOCKSTEP_STORE_HOSTED"] = std::to_string(1);
  variables[kLaunchTag] = facts.launch_id;
  if (options.omp_threads > 0 && variables["OMP_NUM_THREADS"].empty()) {
    variables["OMP_NUM_THREADS"] = std::to_string(options.omp_threads);
  }
  std::vector<std::string> block;
  block.reserve(variables.size());
  for (const auto& [name, value] : variables) block.push_back(name + "=" + value);
  return block;
}

}  // namespace lockstep::dist
