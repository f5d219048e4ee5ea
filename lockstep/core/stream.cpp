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
#include "lockstep/core/stream_state.h"

namespace lockstep {
namespace detail {

using Clock = std::chrono::steady_clock;

class CpuEvent final : public EventState {
 public:
  void happen(std::exception_ptr error) {
    {
      std::lock_guard lock(mutex_);
      time_ = Clock::now();
      error_ = std::move(error);
    }
    changed_.notify_all();
  }

  bool query() const override {
    std::lock_guard lock(mutex_);
    return time_.has_value();
  }

  // The error of the work before it; null where that went well.
  std::exception_ptr await() const override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return time_.has_value(); });
    return error_;
  }

  void synchronize(std::chrono::nanoseconds timeout) const override {
    std::unique_lock lock(mutex_);
    LOCKSTEP_CHECK_AS(
        TimeoutError, changed_.wait_for(lock, timeout, [&] { return time_.has_value(); }),
        "event: had not happened after {:g} s", std::chrono::duration<double>(timeout).count());
    if (error_) std::rethrow_exception(error_);
  }

  std::optional<std::chrono::nanoseconds> since(const EventState& start) const override {
    const auto* other = dynamic_cast<const CpuEvent*>(&start);
    LOCKSTEP_CHECK(other,
                   "event: the time between a CPU's and a CUDA device's event was asked for");
    const auto from = other->time(), to = time();
    if (!from || !to) return std::nullopt;
    return *to - *from;
  }

 private:
  std::optional<Clock::time_point> time() const {
    std::lock_guard lock(mutex_);
    return time_;
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Clock::time_point> time_;
  std::exception_ptr error_;
};

// Owned by the handles; the thread owns only the Queue, so that the last handle may go away inside
// a task.
class CpuStream final : public StreamState {
 public:
  CpuStream() = default;
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  ~CpuStream() override {
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

  Device device() const override { return kCpu; }

  void enqueue(std::function<void()> task) override { push(std::move(task), nullptr); }

  std::shared_ptr<EventState> record() override {
    auto event = std::make_shared<CpuEvent>();
    push(nullptr, event);
    return event;
  }

  // The event may be of any device.
  void wait(const std::shared_ptr<EventState>& event) override {
    if (event->query() && !event->await()) return;
    enqueue([event] {
      if (std::exception_ptr error = event->await()) std::rethrow_exception(error);
    });
  }

  void push(std::function<void()> task, std::shared_ptr<CpuEvent> event) {
    {
      std::lock_guard lock(queue_->mutex);
      if (!thread_.joinable()) thread_ = start_quiet_thread([queue = queue_] { queue->loop(); });
      queue_->items.push_back({std::move(task), std::move(event)});
    }
    queue_->changed.notify_all();
  }

  bool query() const override {
    std::lock_guard lock(queue_->mutex);
    return queue_->items.empty() && !queue_->busy;
  }

  void synchronize(std::chrono::nanoseconds timeout) override {
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
    std::function<void()> task;       // or
    std::shared_ptr<CpuEvent> event;  // happens now
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

Event::Event() {
  auto state = std::make_shared<detail::CpuEvent>();
  state->happen(nullptr);
  state_ = std::move(state);
}
Event::Event(std::shared_ptr<detail::EventState> state) : state_(std::move(state)) {}

bool Event::query() const { return state_->query(); }

void Event::synchronize(std::chrono::nanoseconds timeout) const { state_->synchronize(timeout); }

std::chrono::nanoseconds Event::since(const Event& start) const {
  const auto elapsed = state_->since(*start.state_);
  LOCKSTEP_CHECK(elapsed, "event: the time between two events was asked for before {} happened",
                 start.query() ? "the second" : "the first");
  return *elapsed;
}

Stream::Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}

Stream Stream::create(Device device, StreamPriority priority) {
  require_device(device, "stream");
  if (device.is_cpu()) return Stream(std::make_shared<detail::CpuStream>());
  return Stream(detail::make_cuda_stream(device, priority == StreamPriority::kHigh));
}

Stream Stream::default_of(Device device) {
  LOCKSTEP_CHECK(device.is_cuda(), "stream: the CPU has no default stream");
  require_device(device, "stream");
  return Stream(detail::default_cuda_stream(device));
}

Device Stream::device() const { return state_->device(); }

void Stream::enqueue(std::function<void()> task) {
  LOCKSTEP_CHECK(task != nullptr, "stream: an empty task was enqueued");
  state_->enqueue(std::move(task));
}

Event Stream::record() { return Event(state_->record()); }
void Stream::wait(const Event& event) { state_->wait(event.state_); }
bool Stream::query() const { return state_->query(); }
void Stream::synchronize(std::chrono::nanoseconds timeout) { state_->synchronize(timeout); }
CUstream_st* Stream::native() const { return state_->native(); }

}  // namespace lockstep
