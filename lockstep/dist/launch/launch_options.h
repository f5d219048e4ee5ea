// What the launcher is asked for; the defaults are torchrun's unless a comment says otherwise.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/dist/launch/stream_plan.h"
#include "lockstep/dist/store.h"

namespace lockstep::dist {

struct LaunchOptions {
  std::vector<std::string> command;
  int nproc_per_node = 1;
  int nnodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  // 0: a free port (torchrun: 29500, which two jobs would fight for)
  int max_restarts = 0;
  Duration monitor_interval{100};
  StreamPlan redirects;
  StreamPlan tee;
  std::string log_dir;                  // "": a new folder under /tmp if redirects or tee want one
  std::vector<int> local_ranks_filter;  // console output of these only; empty: of all
  std::string run_id = "none";
  std::string role = "default";
  int omp_threads = 0;          // OMP_NUM_THREADS for workers; 0: leave the variable as it is
  bool adopts_orphans = false;  // the caller is a child subreaper and has no other children
  Duration join_timeout = std::chrono::seconds(300);  // for the other nodes' launchers
  Duration failure_grace = std::chrono::seconds(2);   // SIGTERM to SIGKILL after a failure
  Duration stop_grace = std::chrono::seconds(30);     // after the launcher was told to stop
};

// Number of workers from "4", "auto" or "cpu" (one per allowed core), "gpu" (an Error without
// GPUs).
int resolve_nproc(const std::string& text, int allowed_cores);

// Cores this process may run on.
int allowed_cores();

// Error for a contradiction or a value out of range; says which flag.
void validate(const LaunchOptions& options);

}  // namespace lockstep::dist
