// Where a process stands in its job, from the environment. The one file that reads it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::dist {

// What a launcher tells its workers. Without one, a world of one process.
struct Environment {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  int group_rank = 0;  // the node's number
  std::string master_addr = "127.0.0.1";
  int master_port = 0;        // 0: no port was given
  int port_span = 1;          // ports tried from master_port on; see open_store
  bool launched = false;      // a launcher's variables were there
  bool store_hosted = false;  // the launcher serves the store: rank 0 connects, as all others do
  std::string job_id;         // LOCKSTEP_JOB_ID; starts the names of shared-memory segments
  std::string interface;      // LOCKSTEP_INTERFACE: device or host name to bind to; empty: any
  int restart_count = 0;      // TORCHELASTIC_RESTART_COUNT
  int max_restarts = 0;       // TORCHELASTIC_MAX_RESTARTS
};

// Reads, in this order of precedence: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK
// (torchrun and lockstep-run); OMPI_COMM_WORLD_* (mpirun); SLURM_PROCID, SLURM_NTASKS,
// SLURM_LOCALID, SLURM_NODEID (a job step). MASTER_ADDR and MASTER_PORT serve all. A value that is
// no number, a rank outside its world, or half of a pair is an Error that names the variable.
Environment read_environment();

// The same from any source of variables; nullopt: unset. An empty value counts as unset.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;
Environment read_environment(const VariableLookup& lookup);

// One variable of this process's environment.
std::optional<std::string> environment_variable(const std::string& name);

// All of it as NAME=value, for the launcher to hand on.
std::vector<std::string> environment_block();

}  // namespace lockstep::dist
