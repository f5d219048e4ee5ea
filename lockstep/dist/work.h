// Work: the handle of a collective that was handed to a process group and may not be done yet.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>

namespace lockstep::dist {

// What the caller calls a collective: shown in errors, compared among ranks. -1: not given.
struct Tag {
  std::int64_t step = -1;
  std::int32_t bucket = -1;

  bool operator==(const Tag&) const = default;
};

// Nanoseconds of std::chrono::steady_clock; 0: not yet. On Linux this clock is the same in all
// processes of one host, so that the times of ranks can be laid over each other.
struct WorkTimes {
  std::int64_t enqueued = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

// Thread-safe.
//
// Of memory on a CUDA device: wait() does not hold up the host. It makes the device's current
// stream wait, so that what comes after it there sees the result; the host sees errors later, at
// the next call of the group. Times but `enqueued` stay 0.
class Work {
 public:
  virtual ~Work() = default;
  // `description` as in "all_reduce sum of 100 f32 (step 3, bucket 0)"; `timeout` counts from the
  // start of the work.
  Work(std::string description, std::chrono::nanoseconds timeout);

  // Finished, well or not. Never throws, never waits.
  virtual bool done() const;
  // Returns once the work is done; rethrows what it failed with: TimeoutError at the group's
  // timeout (names collective, sequence number, tag and missing ranks), CommError where a peer
  // died, left, aborted or asked for something else. May be called any number of times, in any
  // order among works.
  virtual void wait();
  // Null while running and after success.
  virtual std::exception_ptr error() const;
  WorkTimes times() const;
  const std::string& description() const { return description_; }

  // For process groups.
  void mark_started();
  void mark_done(std::exception_ptr error = nullptr);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string description_;
  std::chrono::nanoseconds timeout_;
  WorkTimes times_;
  bool done_ = false;
  std::exception_ptr error_;
};

}  // namespace lockstep::dist
