// The measurement of all_reduce_perf on one rank.
#pragma once

#include <functional>
#include <string>

#include "bench/perf_options.h"
#include "bench/perf_report.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::bench {

// Memory that all ranks of a forked or threaded run share, for the limit; null: none.
struct SharedArena {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Runs the sweep; every rank returns the same results. `print` gets the table's lines.
PerfRun measure(dist::ProcessGroup& group, const PerfOptions& options, SharedArena arena,
                const std::function<void(const std::string&)>& print);

}  // namespace lockstep::bench
