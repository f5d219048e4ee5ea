// Which examples a rank sees, and how they fall into batches: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

// PyTorch's DistributedSampler, number for number: 0..n-1, or with `shuffle` the permutation that
// a generator seeded with seed + epoch draws; then padded from its head to a multiple of `world`
// (repeating it as often as needed), or with `drop_last` cut to one; rank r gets places r, r+world,
// …. All ranks get equally many. Errors: n < 0, world < 1, rank outside 0..world-1.
// Source: torch/utils/data/distributed.py.
std::vector<std::int64_t> shard_indices(std::int64_t n, std::int64_t rank, std::int64_t world,
                                        std::int64_t epoch = 0, std::uint64_t seed = 0,
                                        bool shuffle = true, bool drop_last = false);

// Length of that list.
std::int64_t shard_size(std::int64_t n, std::int64_t world, bool drop_last = false);

// For exact evaluation: rank, rank+world, … below n. Every example exactly once over all ranks, so
// ranks may differ by one: sum (never average) metrics over them, and divide by n.
std::vector<std::int64_t> exact_shard_indices(std::int64_t n, std::int64_t rank,
                                              std::int64_t world);

struct EpochPlan {
  std::int64_t steps = 0;       // batches
  std::int64_t last_batch = 0;  // examples in the last one
  std::int64_t samples = 0;     // examples seen
};

// n examples in batches of batch_size; a smaller last batch is kept unless drop_last.
// Errors: n < 0, batch_size < 1.
EpochPlan plan_epoch(std::int64_t n, std::int64_t batch_size, bool drop_last);

// Training on fewer examples than ranks would only repeat them. Throws Error naming both numbers.
void check_enough_examples(std::int64_t n, std::int64_t world);

// epochs[r] is rank r's epoch. Ranks in different epochs would see overlapping shards: throws Error
// "epoch differs: rank 0=…, rank 1=…" unless all are equal.
void check_same_epoch(std::span<const std::int64_t> epochs);

}  // namespace lockstep::data
