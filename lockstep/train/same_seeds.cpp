#include "lockstep/train/same_seeds.h"

#include "lockstep/core/generator.h"

namespace lockstep::train {

void same_seeds(std::uint64_t seed, int rank) {
  default_generator().manual_seed(seed);
  default_generator().set_stream(static_cast<std::uint64_t>(rank));
}

}  // namespace lockstep::train
