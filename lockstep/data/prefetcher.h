// Worker threads that make the batches of one pass ahead of their use. Internal to the loader.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// Delivers make(first) … make(end - 1) in order, whichever thread finishes first. At most `ahead`
// batches are made or in the making beyond the delivered ones.
class Prefetcher {
 public:
  using MakeBatch = std::function<Batch(std::int64_t)>;

  Prefetcher(MakeBatch make, std::int64_t first, std::int64_t end, int workers, int ahead);
  // Waits for the batches in the making only.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next batch; rethrows what its make() threw, and then again at each further call. Throws
  // TimeoutError after `timeout`. Not to be called beyond `end`.
  Batch next(std::chrono::milliseconds timeout);

 private:
  enum class State { kEmpty, kReady, kFailed };
  struct Slot {
    State state = State::kEmpty;
    Batch batch;
    std::exception_ptr error;
  };

  void work();
  Slot& slot(std::int64_t index) { return slots_[static_cast<std::size_t>(index) % slots_.size()]; }

  MakeBatch make_;
  std::int64_t end_;
  std::mutex mutex_;
  std::condition_variable room_;   // for the workers: a slot is free, or stop
  std::condition_variable ready_;  // for next(): a batch is made
  std::vector<Slot> slots_;        // batch i lives in slot i modulo their number
  std::int64_t claimed_;           // the first batch that no worker has taken
  std::int64_t delivered_;         // the first batch that next() has not given out
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::data
