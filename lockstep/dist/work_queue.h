// WorkQueue: runs jobs in order on one thread, which starts with the first job.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep::dist {

// Thread-safe. Jobs must not throw.
class WorkQueue {
 public:
  WorkQueue() = default;
  // Waits for the running job, drops none: the jobs still queued run first.
  ~WorkQueue() { finish(); }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(std::function<void()> job);

  // Runs the job on the caller's thread if nothing is queued or running; else returns false and
  // does nothing. Jobs pushed meanwhile wait for its end.
  template <class Job>
  bool run_here_if_idle(Job&& job) {
    if (!claim()) return false;
    try {
      job();
    } catch (...) {
      release();
      throw;
    }
    release();
    return true;
  }

  // Runs what is queued and joins the thread; push is an error afterwards.
  void finish();

 private:
  bool claim();
  void release();
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::thread thread_;
  bool busy_ = false;
  bool finishing_ = false;
};

}  // namespace lockstep::dist
