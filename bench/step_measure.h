// The measurement of bench_step on one rank.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/sample_statistics.h"
#include "bench/step_options.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::bench {

// One training from one seed. Times in seconds.
struct StepResult {
  std::uint64_t seed = 0;
  Statistics step;                       // of the slowest rank in each step
  double images_per_second = 0;          // of all ranks together, from the median step
  double first_loss = 0, last_loss = 0;  // of rank 0
  std::int64_t samples_seen = 0;         // of all ranks, warm-up included
};

struct StepRun {
  StepOptions options;
  int ranks = 1;
  int allowed_cores = 0;           // of the process before it was pinned
  double init_seconds = 0;         // thread pool and kernels' engine, before any step
  double start_to_first_step = 0;  // from the start of the process to the end of its first step
  double first_step_at = 0;        // CLOCK_MONOTONIC at the end of the first step
  std::int64_t peak_resident = 0;  // bytes, largest of the ranks
  std::vector<StepResult> results;
};

// Collective where there is a group; null: one rank. Every rank returns the same times.
StepRun measure_steps(const StepOptions& options, std::shared_ptr<dist::ProcessGroup> group);

}  // namespace lockstep::bench
