#include "lockstep/data/prefetcher.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "lockstep/core/check.h"
#include "lockstep/core/quiet_thread.h"
#include "lockstep/core/threads.h"

namespace lockstep::data {

Prefetcher::Prefetcher(MakeBatch make, std::int64_t first, std::int64_t end, int workers, int ahead)
    : make_(std::move(make)),
      end_(end),
      slots_(static_cast<std::size_t>(std::max(ahead, 1))),
      claimed_(first),
      delivered_(first) {
  std::string failure;
  try {
    for (int i = 0; i < workers; ++i) threads_.push_back(start_quiet_thread([this] { work(); }));
  } catch (const std::system_error& error) {
    failure = error.what();
  }
  // With fewer threads than asked for it still works.
  LOCKSTEP_CHECK(!threads_.empty(), "data loader: cannot start a worker thread: {}", failure);
}

Prefetcher::~Prefetcher() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::work() {
  set_num_threads(1);  // the workers are the parallelism; the cores are for the training step
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto room = static_cast<std::int64_t>(slots_.size());
    room_.wait(lock, [&] { return stop_ || claimed_ == end_ || claimed_ - delivered_ < room; });
    if (stop_ || claimed_ == end_) return;
    const std::int64_t index = claimed_++;
    lock.unlock();
    Slot made;
    try {
      made.batch = make_(index);
      made.state = State::kReady;
    } catch (...) {
      made.error = std::current_exception();
      made.state = State::kFailed;
    }
    lock.lock();
    if (made.state == State::kFailed) claimed_ = end_;  // nothing beyond it will be delivered
    slot(index) = std::move(made);
    ready_.notify_all();
    if (claimed_ == end_) room_.notify_all();
  }
}

Batch Prefetcher::next(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  Slot& wanted = slot(delivered_);
  const bool made = ready_.wait_for(lock, timeout, [&] { return wanted.state != State::kEmpty; });
  LOCKSTEP_CHECK_AS(TimeoutError, made, "data loader: batch {} was not ready after {} ms",
                    delivered_, timeout.count());
  if (wanted.state == State::kFailed) std::rethrow_exception(wanted.error);
  Batch batch = std::exchange(wanted, Slot{}).batch;
  ++delivered_;
  lock.unlock();
  room_.notify_one();
  return batch;
}

}  // namespace lockstep::data
