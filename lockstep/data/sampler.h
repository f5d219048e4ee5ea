// Samplers: the order in which a pass over a data set visits it.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

// Used by one thread. A list depends only on the constructor's arguments and the epoch, so a pass
// can be repeated, on any machine, from the epoch alone.
class Sampler {
 public:
  virtual ~Sampler() = default;

  // Length of each pass's list.
  virtual std::int64_t size() const = 0;
  // Starts a pass and returns its list.
  virtual std::vector<std::int64_t> indices() = 0;

  // The epoch of the next pass, or of the one that has begun since it was set.
  virtual void set_epoch(std::int64_t epoch) = 0;
  virtual std::int64_t epoch() const = 0;
};

// 0..n-1 in each pass.
class SequentialSampler : public Sampler {
 public:
  // Errors: n < 0.
  explicit SequentialSampler(std::int64_t n);

  std::int64_t size() const override { return n_; }
  std::vector<std::int64_t> indices() override;
  void set_epoch(std::int64_t epoch) override { epoch_ = epoch; }
  std::int64_t epoch() const override { return epoch_; }

 private:
  std::int64_t n_;
  std::int64_t epoch_ = 0;
};

// The permutation of a generator seeded with seed + epoch. Each further pass without set_epoch is
// the next epoch.
class RandomSampler : public Sampler {
 public:
  // Errors: n < 0.
  RandomSampler(std::int64_t n, std::uint64_t seed);

  std::int64_t size() const override { return n_; }
  std::vector<std::int64_t> indices() override;
  void set_epoch(std::int64_t epoch) override;
  std::int64_t epoch() const override { return epoch_; }

 private:
  std::int64_t n_;
  std::uint64_t seed_;
  std::int64_t epoch_ = 0;
  bool begun_ = false;  // a pass of epoch_ has been handed out
};

}  // namespace lockstep::data
