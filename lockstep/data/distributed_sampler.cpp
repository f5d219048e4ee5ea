#include "lockstep/data/distributed_sampler.h"

#include "lockstep/core/check.h"
#include "lockstep/core/log.h"
#include "lockstep/data/shard.h"

namespace lockstep::data {
namespace {

void check_arguments(std::int64_t n, std::int64_t rank, std::int64_t world) {
  LOCKSTEP_CHECK(n >= 0, "distributed sampler: the data set's size must not be negative, got {}",
                 n);
  LOCKSTEP_CHECK(world >= 1, "distributed sampler: world size must be at least 1, got {}", world);
  LOCKSTEP_CHECK(rank >= 0 && rank < world, "distributed sampler: rank {} is outside 0..{}", rank,
                 world - 1);
}

}  // namespace

DistributedSampler::DistributedSampler(std::int64_t n, std::int64_t rank, std::int64_t world,
                                       const DistributedSamplerOptions& options)
    : n_(n), rank_(rank), world_(world), options_(options) {
  check_arguments(n, rank, world);
}

std::int64_t DistributedSampler::size() const { return shard_size(n_, world_, options_.drop_last); }

void DistributedSampler::set_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  begun_ = false;
  epoch_set_ = true;
}

std::vector<std::int64_t> DistributedSampler::indices() {
  if (begun_ && options_.advance_epoch) {
    ++epoch_;
  } else if (begun_ && options_.shuffle && !epoch_set_ && !warned_) {
    warned_ = true;
    log(LogLevel::kWarning,
        "distributed sampler: a second pass begins but set_epoch was never called, so it repeats "
        "the order of the first; call set_epoch(epoch) before each pass");
  }
  begun_ = true;
  return shard_indices(n_, rank_, world_, epoch_, options_.seed, options_.shuffle,
                       options_.drop_last);
}

ExactDistributedSampler::ExactDistributedSampler(std::int64_t n, std::int64_t rank,
                                                 std::int64_t world)
    : n_(n), rank_(rank), world_(world) {
  check_arguments(n, rank, world);
}

std::int64_t ExactDistributedSampler::size() const {
  return n_ > rank_ ? (n_ - rank_ - 1) / world_ + 1 : 0;
}

std::vector<std::int64_t> ExactDistributedSampler::indices() {
  return exact_shard_indices(n_, rank_, world_);
}

}  // namespace lockstep::data
