// What all_reduce_perf is asked to do.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/core/dtype.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::bench {

struct PerfOptions {
  std::int64_t begin = 8;        // bytes
  std::int64_t end = 256 << 20;  // bytes
  std::int64_t step = 0;         // bytes; where factor <= 1
  double factor = 2;
  int iterations = 20;
  int warm_up = 3;
  bool check = true;
  DType dtype = DType::kF32;
  dist::ReduceOp op = dist::ReduceOp::kSum;
  int ranks = 2;              // processes to fork where no launcher has started us
  int local = 0;              // threads instead; 0: processes
  bool plain_memory = false;  // buffers that peers cannot reach
  bool asynchronous = false;  // through the group's queue instead of on the caller's thread
  bool pin = true;            // rank r to allowed core r, where there are enough
  int inject_error = -1;      // falsify one element of this rank before the check
  std::string json;           // file, "-": stdout (and nothing else there)
};

// Throws std::exception with a message for the user; sets `help` and returns where that is asked.
PerfOptions parse_perf_options(int argc, char** argv, std::string& help);

DType parse_dtype(const std::string& name);
dist::ReduceOp parse_reduce_op(const std::string& name);

}  // namespace lockstep::bench
