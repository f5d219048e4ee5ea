// Batches of a data set in a sampler's order, made ahead by worker threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/sampler.h"
#include "lockstep/data/shard.h"

namespace lockstep::data {

class Prefetcher;

struct DataLoaderOptions {
  std::int64_t batch_size = 1;
  bool drop_last = false;  // drops a smaller last batch
  int workers = 0;         // 0: next() makes its batch itself and no thread is started
  int prefetch = 2;        // batches ahead per worker
  // For one batch from the workers; then TimeoutError.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

// A place between two batches. After an epoch's last batch it is still that epoch's: what the
// trainer does at an epoch's end is yet to come.
struct LoaderPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;  // batches of the epoch that were delivered

  bool operator==(const LoaderPosition&) const = default;
};

// Batches are the same, in the same order, for any number of workers.
//
//   for (epoch = loader.position().epoch; epoch < epochs; ++epoch) {
//     sampler->set_epoch(epoch);
//     for (Batch& batch : loader) …
//   }
//
// Used by one thread; the data set is read by the workers too.
class DataLoader {
 public:
  // Errors: null data set or sampler, batch_size < 1, workers < 0, prefetch < 1, timeout <= 0.
  DataLoader(std::shared_ptr<const Dataset> dataset, std::shared_ptr<Sampler> sampler,
             const DataLoaderOptions& options = {});
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // Steps, size of the last batch and examples of one epoch, on this rank.
  EpochPlan epoch_plan() const;

  // Starts a pass over the sampler's epoch, dropping what is left of one under way. The first pass
  // after restore() starts at the restored batch.
  void reset();
  // The pass's next batch, nothing at its end; without a pass under way starts one. What the data
  // set throws for a batch is thrown here when that batch is due; batches before it come first.
  std::optional<Batch> next();

  LoaderPosition position() const;
  // Continues at a saved position: sets the sampler's epoch. Errors: negative, or beyond the
  // epoch's last batch (the saving run had other data or another batch size).
  void restore(const LoaderPosition& position);

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Iterator() = default;
    Batch& operator*() { return *batch_; }
    Batch* operator->() { return &*batch_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const {
      return batch_.has_value() == other.batch_.has_value();
    }

   private:
    friend class DataLoader;
    explicit Iterator(DataLoader* loader) : loader_(loader) { ++*this; }
    DataLoader* loader_ = nullptr;
    std::optional<Batch> batch_;
  };
  // begin() starts a pass, as reset().
  Iterator begin();
  Iterator end() { return {}; }

 private:
  Batch make_batch(std::int64_t index) const;

  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<Sampler> sampler_;
  DataLoaderOptions options_;
  std::optional<LoaderPosition> restored_;  // where the next pass starts
  bool passing_ = false;
  LoaderPosition position_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> order_;  // the pass's indices
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace lockstep::data
