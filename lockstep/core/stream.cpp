#include "lockstep/core/stream.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "lockstep/core/check.h"
#include "lockstep/core/quiet_thread.h"

namespace lockstep {
namespace detail {

using Clock = std::chrono::steady_clock;

class EventState {
 public:
  void happen(std::exception_ptr error) {
    {
      std::lock_guard lock(mutex_);
      time_ = Clock::now();
      error_ = std::move(error);
    }
    changed_.notify_all();
  }

  bool query() const {
    std::lock_guard lock(mutex_);
    return time_.has_value();
  }

  // The error of the work before it; null where that went well.
  std::exception_ptr await() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return time_.has_value(); });
    return error_;
  }

  void synchronize(std::chrono::nanoseconds timeout) const {
    std::unique_lock lock(mutex_);
    LOCKSTEP_CHECK_AS(
        TimeoutError, changed_.wait_for(lock, timeout, [&] { return time_.has_value(); }),
        "event: had not happened after {:g} s", std::chrono::duration<double>(timeout).count());
    if (error_) std::rethrow_exception(error_);
  }

  std::optional<Clock::time_point> time() const {
    std::lock_guard lock(mutex_);
    return time_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Clock::time_point> time_;
  std::exception_ptr error_;
};

// Owned by the handles; the thread owns only the Queue, so that the last handle may go away inside
// a task.
class StreamState {
 public:
  StreamState() = default;
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  ~StreamState() {
    {
      std::lock_guard lock(queue_->mutex);
      queue_->ending = true;
    }
    queue_->changed.notify_all();
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id())
      thread_.detach();
    else
      thread_.join();
  }

  void push(std::function<void()> task, std::shared_ptr<EventState> event) {
    {
      std::lock_guard lock(queue_->mutex);
      if (!thread_.joinable()) thread_ = start_quiet_thread([queue = queue_] { queue->loop(); });
      queue_->items.push_back({std::move(task), std::move(event)});
    }
    queue_->changed.notify_all();
  }

  bool idle() const {
    std::lock_guard lock(queue_->mutex);
    return queue_->items.empty() && !queue_->busy;
  }

  void synchronize(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(queue_->mutex);
    LOCKSTEP_CHECK(!thread_.joinable() || thread_.get_id() != std::this_thread::get_id(),
                   "stream: synchronize was called from a task of the stream itself");
    LOCKSTEP_CHECK_AS(TimeoutError,
                      queue_->changed.wait_for(
                          lock, timeout, [&] { return queue_->items.empty() && !queue_->busy; }),
                      "stream: {} tasks were not done after {:g} s", queue_->items.size() + 1,
                      std::chrono::duration<double>(timeout).count());
    if (std::exception_ptr error = std::exchange(queue_->error, nullptr))
      std::rethrow_exception(error);
  }

 private:
  struct Item {
    std::function<void()> task;         // or
    std::shared_ptr<EventState> event;  // happens now
  };

  struct Queue {
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::deque<Item> items;
    bool busy = false;
    bool ending = false;
    std::exception_ptr error;

    void loop() {
      std::unique_lock lock(mutex);
      while (true) {
        changed.wait(lock, [&] { return !items.empty() || ending; });
        if (items.empty()) return;
        Item item = std::move(items.front());
        items.pop_front();
        busy = true;
        std::exception_ptr failed = error;
        lock.unlock();
        if (item.event)
          item.event->happen(failed);
        else if (!failed)
          failed = run(item.task);
        item = {};  // what the task holds may belong to other streams
        lock.lock();
        error = failed;
        busy = false;
        changed.notify_all();
      }
    }

    static std::exception_ptr run(const std::function<void()>& task) noexcept {
      try {
        task();
        return nullptr;
      } catch (...) {
        return std::current_exception();
      }
    }
  };

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

}  // namespace detail

Event::Event() : state_(std::make_shared<detail::EventState>()) { state_->happen(nullptr); }
Event::Event(std::shared_ptr<detail::EventState> state) : state_(std::move(state)) {}

bool Event::query() const { return state_->query(); }

void Event::synchronize(std::chrono::nanoseconds timeout) const { state_->synchronize(timeout); }

std::chrono::nanoseconds Event::since(const Event& start) const {
  const auto from = start.state_->time(), to = state_->time();
  LOCKSTEP_CHECK(from && to, "event: the time between two events was asked for before {} happened",
                 from ? "the second" : "the first");
  return *to - *from;
}

Stream::Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}

Stream Stream::create(Device device) {
  LOCKSTEP_CHECK(device == kCpu, "stream: there is no device {} with index {}", device.str(),
                 static_cast<int>(device.index));
  return Stream(std::make_shared<detail::StreamState>());
}

Device Stream::device() const { return kCpu; }

void Stream::enqueue(std::function<void()> task) {
  LOCKSTEP_CHECK(task != nullptr, "stream: an empty task was enqueued");
  state_->push(std::move(task), nullptr);
}

Event Stream::record() {
  auto event = std::make_shared<detail::EventState>();
  state_->push(nullptr, event);
  return Event(event);
}

void Stream::wait(const Event& event) {
  if (event.query() && !event.state_->await()) return;
  state_->push(
      [state = event.state_] {
        if (std::exception_ptr error = state->await()) std::rethrow_exception(error);
      },
      nullptr);
}

bool Stream::query() const { return state_->idle(); }

void Stream::synchronize(std::chrono::nanoseconds timeout) { state_->synchronize(timeout); }

}  // namespace lockstep
