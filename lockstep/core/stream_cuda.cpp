// Streams and events of CUDA devices.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/capture_cuda.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_fault.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/error.h"
#include "lockstep/core/error_cuda.h"
#include "lockstep/core/stream_state.h"

namespace lockstep {
namespace detail {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<std::uint64_t> g_host_synchronizations = 0;

void count_synchronization(const char* op) {
  cuda::refuse_in_capture(op);
  g_host_synchronizations.fetch_add(1, std::memory_order_relaxed);
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

// CUDA has no wait with a deadline: polls, at first without pause, then ever more rarely.
template <class Done>
bool wait_until_done(std::chrono::nanoseconds timeout, const Done& done) {
  const auto start = Clock::now();
  std::chrono::microseconds pause(0);
  while (!done()) {
    const auto waited = Clock::now() - start;
    if (waited >= timeout) return false;
    if (waited > std::chrono::milliseconds(1))
      pause = std::min(pause + std::chrono::microseconds(5), std::chrono::microseconds(200));
    if (pause.count() == 0)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(pause);
  }
  return true;
}

bool finished(cudaError_t status, const char* call) {
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // it is no error
    return false;
  }
  cuda::check(status, call);
  return true;
}

class CudaEvent final : public EventState {
 public:
  explicit CudaEvent(Device device) : device_(device) {
    const DeviceGuard guard(device);
    cuda::check(cudaEventCreateWithFlags(&event_, cudaEventDefault), "cudaEventCreate");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }

  bool query() const override { return finished(cudaEventQuery(event_), "cudaEventQuery"); }

  void synchronize(std::chrono::nanoseconds timeout) const override {
    count_synchronization("event: synchronize");
    if (!wait_until_done(timeout, [&] { return query(); }))
      throw TimeoutError(fmt::format("event: had not happened on {} after {:g} s", device_.str(),
                                     seconds(timeout)));
    cuda::throw_device_fault();
  }

  std::exception_ptr await() const override {
    try {
      cuda::check(cudaEventSynchronize(event_), "cudaEventSynchronize");
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  std::optional<std::chrono::nanoseconds> since(const EventState& start) const override {
    if (!start.native())
      throw Error("event: the time between a CPU's and a CUDA device's event was asked for");
    if (!start.query() || !query()) return std::nullopt;
    float milliseconds = 0;
    cuda::check(cudaEventElapsedTime(&milliseconds, start.native(), event_),
                "cudaEventElapsedTime");
    return std::chrono::nanoseconds(static_cast<std::int64_t>(milliseconds * 1e6));
  }

  CUevent_st* native() const override { return event_; }

 private:
  Device device_;
  cudaEvent_t event_ = nullptr;
};

// Streams that no handle means any more. They are used again rather than destroyed: cached memory
// that belongs to one stays in the order of its work.
class IdleStreams {
 public:
  static IdleStreams& instance() {
    static auto& streams = *new IdleStreams;
    return streams;
  }
  cudaStream_t take(Device device, bool high_priority) {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[{device.index, high_priority}];
    if (idle.empty()) return nullptr;
    const cudaStream_t stream = idle.back();
    idle.pop_back();
    return stream;
  }
  void put(Device device, bool high_priority, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    idle_[{device.index, high_priority}].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, bool>, std::vector<cudaStream_t>> idle_;
};

class CudaStream final : public StreamState {
 public:
  CudaStream(Device device, cudaStream_t stream, bool high_priority)
      : device_(device), stream_(stream), high_priority_(high_priority) {}
  ~CudaStream() override {
    if (stream_) IdleStreams::instance().put(device_, high_priority_, stream_);
  }

  Device device() const override { return device_; }

  void enqueue(std::function<void()> task) override {
    if (cuda::is_captured(stream_))
      throw Error("stream: a task of the host runs once, so it can't be captured in a graph");
    auto call = std::make_unique<Task>(Task{std::move(task), failure_});
    const DeviceGuard guard(device_);
    cuda::check(cudaLaunchHostFunc(stream_, &run_task, call.get()), "cudaLaunchHostFunc");
    call.release();
  }

  std::shared_ptr<EventState> record() override {
    const DeviceGuard guard(device_);
    auto event = std::make_shared<CudaEvent>(device_);
    cuda::check(cudaEventRecord(event->native(), stream_), "cudaEventRecord");
    return event;
  }

  void wait(const std::shared_ptr<EventState>& event) override {
    if (event->native()) {
      const DeviceGuard guard(device_);
      cuda::check(cudaStreamWaitEvent(stream_, event->native(), 0), "cudaStreamWaitEvent");
    } else if (!event->query() || event->await()) {
      enqueue([event] {
        if (std::exception_ptr error = event->await()) std::rethrow_exception(error);
      });
    }
  }

  bool query() const override {
    const DeviceGuard guard(device_);
    return finished(cudaStreamQuery(stream_), "cudaStreamQuery");
  }

  void synchronize(std::chrono::nanoseconds timeout) override {
    count_synchronization("stream: synchronize");
    if (!wait_until_done(timeout, [&] { return query(); }))
      throw TimeoutError(fmt::format("stream: the work of {} was not done after {:g} s",
                                     device_.str(), seconds(timeout)));
    cuda::throw_device_fault();
    const std::lock_guard lock(failure_->mutex);
    if (std::exception_ptr error = std::exchange(failure_->error, nullptr))
      std::rethrow_exception(error);
  }

  CUstream_st* native() const override { return stream_; }

 private:
  struct Failure {
    std::mutex mutex;
    std::exception_ptr error;
  };
  struct Task {
    std::function<void()> run;
    std::shared_ptr<Failure> failure;
  };

  static void run_task(void* data) {
    const std::unique_ptr<Task> task(static_cast<Task*>(data));
    const std::lock_guard lock(task->failure->mutex);
    if (task->failure->error) return;
    try {
      task->run();
    } catch (...) {
      task->failure->error = std::current_exception();
    }
  }

  Device device_;
  cudaStream_t stream_;
  bool high_priority_;
  std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
};

}  // namespace

std::shared_ptr<StreamState> make_cuda_stream(Device device, bool high_priority) {
  const DeviceGuard guard(device);
  if (cudaStream_t idle = IdleStreams::instance().take(device, high_priority))
    return std::make_shared<CudaStream>(device, idle, high_priority);
  int least = 0, greatest = 0;
  cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
              "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                           high_priority ? greatest : least),
              "cudaStreamCreateWithPriority");
  return std::make_shared<CudaStream>(device, stream, high_priority);
}

std::shared_ptr<StreamState> default_cuda_stream(Device device) {
  static std::mutex mutex;
  static auto& known = *new std::map<int, std::shared_ptr<StreamState>>;
  const std::lock_guard lock(mutex);
  auto& stream = known[device.index];
  if (!stream) stream = std::make_shared<CudaStream>(device, nullptr, false);
  return stream;
}

}  // namespace detail

std::uint64_t host_synchronizations() { return detail::g_host_synchronizations.load(); }

namespace {

// Null where it is the default stream.
thread_local std::array<std::shared_ptr<Stream>, 128> t_current;

}  // namespace

Stream current_stream(Device device) {
  require_device(device, "current_stream");
  if (device.is_cuda() && t_current[device.index]) return *t_current[device.index];
  return Stream::default_of(device);
}

CUstream_st* current_native_stream(Device device) {
  const auto& stream = t_current[device.index];
  return stream ? stream->native() : nullptr;
}

StreamGuard::StreamGuard(const Stream& stream) : former_(stream) {
  const Device device = stream.device();
  if (device.is_cpu()) return;
  former_device_ = current_cuda_device().index;
  former_ = current_stream(device);
  cuda::check(cudaSetDevice(device.index), "cudaSetDevice");
  t_current[device.index] = stream.native() ? std::make_shared<Stream>(stream) : nullptr;
}

StreamGuard::~StreamGuard() {
  if (former_device_ < 0) return;
  t_current[former_.device().index] =
      former_.native() ? std::make_shared<Stream>(former_) : nullptr;
  cudaSetDevice(former_device_);
}

}  // namespace lockstep
