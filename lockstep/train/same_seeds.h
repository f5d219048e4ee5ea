// The fixed seeds of a run.
#pragma once

#include <cstdint>

namespace lockstep::train {

// Restarts the calling thread's generator: what it draws for weights and shuffles is the same on
// all ranks, what dropout draws differs by rank (its stream), and all of it repeats over runs.
void same_seeds(std::uint64_t seed, int rank);

}  // namespace lockstep::train
