#include "lockstep/dist/work.h"

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The group's thread keeps the deadlines itself; this is for the case that it cannot run.
constexpr std::chrono::seconds kGrace{5};

}  // namespace

Work::Work(std::string description, std::chrono::nanoseconds timeout)
    : description_(std::move(description)), timeout_(timeout) {
  times_.enqueued = now_ns();
}

bool Work::done() const {
  std::lock_guard lock(mutex_);
  return done_;
}

void Work::wait() {
  std::unique_lock lock(mutex_);
  while (!done_) {
    // Works before this one each have a deadline of their own, so the clock starts with the start.
    const std::int64_t start = times_.start != 0 ? times_.start : now_ns();
    const auto limit =
        std::chrono::steady_clock::time_point(std::chrono::nanoseconds(start) + timeout_ + kGrace);
    if (changed_.wait_until(lock, limit) == std::cv_status::timeout && !done_ &&
        times_.start != 0 && now_ns() - times_.start > (timeout_ + kGrace).count())
      throw TimeoutError(
          fmt::format("{}: not done {} s after its start, and the group's thread "
                      "does not answer",
                      description_, (now_ns() - times_.start) / 1000000000));
  }
  if (error_) std::rethrow_exception(error_);
}

std::exception_ptr Work::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

WorkTimes Work::times() const {
  std::lock_guard lock(mutex_);
  return times_;
}

void Work::mark_started() {
  std::lock_guard lock(mutex_);
  times_.start = now_ns();
}

void Work::mark_done(std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    times_.end = now_ns();
    error_ = std::move(error);
    done_ = true;
  }
  changed_.notify_all();
}

}  // namespace lockstep::dist
