// Results of all_reduce_perf: as a table in nccl-tests' format and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bandwidth.h"
#include "bench/perf_options.h"
#include "bench/sample_statistics.h"

namespace lockstep::bench {

struct PerfResult {
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  bool in_place = false;
  Statistics samples;           // seconds per call on the slowest rank
  RankTimes ranks;              // medians of the ranks, seconds
  std::optional<double> limit;  // GB/s of a plain sum in place by two ranks, without any waiting
  std::vector<std::int64_t> wrong;  // elements, by rank; empty: not checked
};

struct PerfRun {
  PerfOptions options;
  std::string transport;
  int ranks = 0;
  std::vector<PerfResult> results;
};

std::string table_header(const PerfRun& run);
// One size: out of place and in place.
std::string table_row(const PerfRun& run, const PerfResult& out_of_place,
                      const PerfResult& in_place);
std::string table_footer(const PerfRun& run);

// Schema "lockstep.all_reduce_perf", version 1. Keys are only ever added.
std::string to_json(const PerfRun& run);

// Ranks with wrong elements.
std::vector<int> failed_ranks(const PerfRun& run);

}  // namespace lockstep::bench
