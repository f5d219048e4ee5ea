// The environment that one worker is started with.
#pragma once

#include <string>
#include <vector>

#include "lockstep/dist/launch/launch_options.h"

namespace lockstep::dist {

// The variable by which a launcher recognises its own workers' descendants.
inline constexpr const char* kLaunchTag = "LOCKSTEP_LAUNCH_ID";

struct RoundFacts {
  std::string job_id;     // the same on every node
  std::string launch_id;  // of this launcher alone
  int master_port = 0;    // where the store really is
  int restart_count = 0;
};

// `base` (NAME=value) with the worker's place written over it: torchrun's variables, and
// LOCKSTEP_JOB_ID, LOCKSTEP_STORE_HOSTED=1, LOCKSTEP_LAUNCH_ID. OMP_NUM_THREADS stays the user's
// own.
std::vector<std::string> worker_environment(const std::vector<std::string>& base,
                                            const LaunchOptions& options, const RoundFacts& facts,
                                            int local_rank);

}  // namespace lockstep::dist
