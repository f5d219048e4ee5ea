// Samplers that share a data set among ranks.
#pragma once

#include "lockstep/data/sampler.h"

namespace lockstep::data {

struct DistributedSamplerOptions {
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;
  // Each further pass without set_epoch is the next epoch. Off, as in PyTorch, it repeats the same
  // order, of which the log is warned once at the second pass.
  bool advance_epoch = false;
};

// PyTorch's lists (shard_indices): equally long on all ranks, padded or cut. More ranks than
// examples are legal and see repeats; check_enough_examples refuses that for training.
class DistributedSampler : public Sampler {
 public:
  // Errors: as shard_indices.
  DistributedSampler(std::int64_t n, std::int64_t rank, std::int64_t world,
                     const DistributedSamplerOptions& options = {});

  std::int64_t size() const override;
  std::vector<std::int64_t> indices() override;
  // Must be called with the same number on all ranks before each pass.
  void set_epoch(std::int64_t epoch) override;
  std::int64_t epoch() const override { return epoch_; }

 private:
  std::int64_t n_;
  std::int64_t rank_;
  std::int64_t world_;
  DistributedSamplerOptions options_;
  std::int64_t epoch_ = 0;
  bool begun_ = false;      // a pass of epoch_ has been handed out
  bool epoch_set_ = false;  // set_epoch has ever been called
  bool warned_ = false;
};

// For evaluation: every example exactly once over all ranks, in order, nothing padded
// (exact_shard_indices). Ranks may differ by one example: add up counts and sums over ranks.
class ExactDistributedSampler : public Sampler {
 public:
  // Errors: as exact_shard_indices.
  ExactDistributedSampler(std::int64_t n, std::int64_t rank, std::int64_t world);

  std::int64_t size() const override;
  std::vector<std::int64_t> indices() override;
  void set_epoch(std::int64_t epoch) override { epoch_ = epoch; }
  std::int64_t epoch() const override { return epoch_; }

 private:
  std::int64_t n_;
  std::int64_t rank_;
  std::int64_t world_;
  std::int64_t epoch_ = 0;
};

}  // namespace lockstep::data
