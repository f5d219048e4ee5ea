#include "lockstep/data/sampler.h"

#include "lockstep/core/check.h"
#include "lockstep/data/shard.h"

namespace lockstep::data {

SequentialSampler::SequentialSampler(std::int64_t n) : n_(n) {
  LOCKSTEP_CHECK(n >= 0, "sampler: the data set's size must not be negative, got {}", n);
}

std::vector<std::int64_t> SequentialSampler::indices() { return exact_shard_indices(n_, 0, 1); }

RandomSampler::RandomSampler(std::int64_t n, std::uint64_t seed) : n_(n), seed_(seed) {
  LOCKSTEP_CHECK(n >= 0, "sampler: the data set's size must not be negative, got {}", n);
}

void RandomSampler::set_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  begun_ = false;
}

std::vector<std::int64_t> RandomSampler::indices() {
  if (begun_) ++epoch_;
  begun_ = true;
  return shard_indices(n_, 0, 1, epoch_, seed_);
}

}  // namespace lockstep::data
