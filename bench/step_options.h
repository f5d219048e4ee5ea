// What bench_step is asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/dtype.h"

namespace lockstep::bench {

struct StepOptions {
  std::string model = "toy_net";
  std::int64_t batch = 64;  // per rank
  DType dtype = DType::kF32;
  int threads = 1;  // per rank
  int steps = 20;   // that count
  int warm_up = 3;  // before them
  int ranks = 0;    // that a launcher must have started; 0: as many as it has
  bool lookahead = false;
  bool pin = true;                          // rank r to allowed cores from r on
  std::vector<std::uint64_t> seeds = {42};  // one training each
  std::string json;                         // file, "-": stdout (and nothing else there)
};

// Throws Error with a message for the user; sets `help` and returns where that is asked.
StepOptions parse_step_options(int argc, char** argv, std::string& help);

}  // namespace lockstep::bench
