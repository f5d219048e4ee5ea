#include "lockstep/data/data_loader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lockstep/core/check.h"
#include "lockstep/data/prefetcher.h"

namespace lockstep::data {

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, std::shared_ptr<Sampler> sampler,
                       const DataLoaderOptions& options)
    : dataset_(std::move(dataset)), sampler_(std::move(sampler)), options_(options) {
  LOCKSTEP_CHECK(dataset_ != nullptr, "data loader: no data set given");
  LOCKSTEP_CHECK(sampler_ != nullptr, "data loader: no sampler given");
  LOCKSTEP_CHECK(options.batch_size >= 1, "data loader: batch_size must be at least 1, got {}",
                 options.batch_size);
  LOCKSTEP_CHECK(options.workers >= 0, "data loader: workers must not be negative, got {}",
                 options.workers);
  LOCKSTEP_CHECK(options.prefetch >= 1, "data loader: prefetch must be at least 1, got {}",
                 options.prefetch);
  LOCKSTEP_CHECK(options.timeout.count() > 0, "data loader: timeout must be positive, got {} ms",
                 options.timeout.count());
}

DataLoader::~DataLoader() = default;

EpochPlan DataLoader::epoch_plan() const {
  return plan_epoch(sampler_->size(), options_.batch_size, options_.drop_last);
}

void DataLoader::reset() {
  prefetcher_.reset();
  passing_ = false;
  order_ = sampler_->indices();
  steps_ =
      plan_epoch(static_cast<std::int64_t>(order_.size()), options_.batch_size, options_.drop_last)
          .steps;
  LoaderPosition start{sampler_->epoch(), 0};
  if (const auto restored = std::exchange(restored_, std::nullopt)) {
    // From a finished epoch the trainer may go straight on to the next one.
    LOCKSTEP_CHECK(restored->epoch == start.epoch || restored->batch == steps_,
                   "data loader: restored at batch {} of epoch {}, but the pass is over epoch {}",
                   restored->batch, restored->epoch, start.epoch);
    if (restored->epoch == start.epoch) start = *restored;
  }
  position_ = start;
  if (options_.workers > 0 && start.batch < steps_) {
    const auto ahead = std::min<std::int64_t>(std::int64_t{options_.workers} * options_.prefetch,
                                              steps_ - start.batch);
    const auto workers = std::min<std::int64_t>(options_.workers, steps_ - start.batch);
    prefetcher_ = std::make_unique<Prefetcher>(
        [this](std::int64_t index) { return make_batch(index); }, start.batch, steps_,
        static_cast<int>(workers), static_cast<int>(ahead));
  }
  passing_ = true;
}

std::optional<Batch> DataLoader::next() {
  if (!passing_) reset();
  if (position_.batch == steps_) {
    prefetcher_.reset();
    passing_ = false;
    return std::nullopt;
  }
  Batch batch = prefetcher_ ? prefetcher_->next(options_.timeout) : make_batch(position_.batch);
  ++position_.batch;
  return batch;
}

Batch DataLoader::make_batch(std::int64_t index) const {
  const auto size = static_cast<std::size_t>(options_.batch_size);
  const std::size_t begin = static_cast<std::size_t>(index) * size;
  const std::size_t end = std::min(order_.size(), begin + size);
  return dataset_->get_batch(std::span(order_).subspan(begin, end - begin));
}

LoaderPosition DataLoader::position() const { return restored_ ? *restored_ : position_; }

void DataLoader::restore(const LoaderPosition& position) {
  const std::int64_t steps = epoch_plan().steps;
  LOCKSTEP_CHECK(position.epoch >= 0 && position.batch >= 0 && position.batch <= steps,
                 "data loader: cannot continue at batch {} of epoch {}: an epoch has {} batches",
                 position.batch, position.epoch, steps);
  prefetcher_.reset();
  passing_ = false;
  sampler_->set_epoch(position.epoch);
  restored_ = position;
}

DataLoader::Iterator DataLoader::begin() {
  reset();
  return Iterator(this);
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  batch_ = loader_->next();
  return *this;
}

}  // namespace lockstep::data
