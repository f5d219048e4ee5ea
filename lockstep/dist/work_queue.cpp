#include "lockstep/dist/work_queue.h"

#include <utility>

#include "lockstep/core/check.h"
#include "lockstep/core/quiet_thread.h"

namespace lockstep::dist {

void WorkQueue::push(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    LOCKSTEP_CHECK(!finishing_, "process group: a call after its end");
    if (!thread_.joinable()) thread_ = start_quiet_thread([this] { loop(); });
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

bool WorkQueue::claim() {
  std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(!finishing_, "process group: a call after its end");
  if (busy_ || !jobs_.empty()) return false;
  busy_ = true;
  return true;
}

void WorkQueue::release() {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    busy_ = false;
    wake = !jobs_.empty() || finishing_;
  }
  if (wake) changed_.notify_one();
}

void WorkQueue::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !busy_ && (!jobs_.empty() || finishing_); });
    if (jobs_.empty()) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    busy_ = false;
  }
}

void WorkQueue::finish() {
  {
    std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace lockstep::dist
