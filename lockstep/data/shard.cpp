#include "lockstep/data/shard.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "lockstep/core/check.h"
#include "lockstep/core/generator.h"

namespace lockstep::data {
namespace {

void check_shard(std::int64_t n, std::int64_t rank, std::int64_t world) {
  LOCKSTEP_CHECK(n >= 0, "sampler: the data set's size must not be negative, got {}", n);
  LOCKSTEP_CHECK(world >= 1, "sampler: world size must be at least 1, got {}", world);
  LOCKSTEP_CHECK(rank >= 0 && rank < world, "sampler: rank {} is outside 0..{}", rank, world - 1);
}

}  // namespace

std::int64_t shard_size(std::int64_t n, std::int64_t world, bool drop_last) {
  check_shard(n, 0, world);
  return drop_last || n % world == 0 ? n / world : n / world + 1;
}

std::vector<std::int64_t> shard_indices(std::int64_t n, std::int64_t rank, std::int64_t world,
                                        std::int64_t epoch, std::uint64_t seed, bool shuffle,
                                        bool drop_last) {
  check_shard(n, rank, world);
  std::vector<std::int64_t> order;
  if (shuffle) {
    order = Generator(seed + static_cast<std::uint64_t>(epoch)).randperm(n);
  } else {
    order.resize(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), std::int64_t{0});
  }
  std::vector<std::int64_t> mine(static_cast<std::size_t>(shard_size(n, world, drop_last)));
  // Padding from the head of the list is the place modulo n.
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::int64_t place = rank + static_cast<std::int64_t>(i) * world;
    mine[i] = order[static_cast<std::size_t>(place % n)];
  }
  return mine;
}

std::vector<std::int64_t> exact_shard_indices(std::int64_t n, std::int64_t rank,
                                              std::int64_t world) {
  check_shard(n, rank, world);
  std::vector<std::int64_t> mine;
  for (std::int64_t i = rank; i < n; i += world) mine.push_back(i);
  return mine;
}

EpochPlan plan_epoch(std::int64_t n, std::int64_t batch_size, bool drop_last) {
  LOCKSTEP_CHECK(n >= 0, "epoch: the number of examples must not be negative, got {}", n);
  LOCKSTEP_CHECK(batch_size >= 1, "epoch: batch size must be at least 1, got {}", batch_size);
  const std::int64_t full = n / batch_size;
  const std::int64_t rest = n % batch_size;
  if (rest > 0 && !drop_last) return {full + 1, rest, n};
  return {full, full > 0 ? batch_size : 0, full * batch_size};
}

void check_enough_examples(std::int64_t n, std::int64_t world) {
  LOCKSTEP_CHECK(n >= world, "data set: {} ranks need at least {} examples but there are {}", world,
                 world, n);
}

void check_same_epoch(std::span<const std::int64_t> epochs) {
  if (std::adjacent_find(epochs.begin(), epochs.end(), std::not_equal_to<>()) == epochs.end())
    return;
  std::string text;
  for (std::size_t rank = 0; rank < epochs.size(); ++rank)
    text += fmt::format("{}rank {}={}", rank == 0 ? "" : ", ", rank, epochs[rank]);
  throw Error("epoch differs: " + text);
}

}  // namespace lockstep::data
