#include "vgpu/runtime/stream.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "vgpu/runtime/device.h"

namespace vgpu {
namespace {

std::uint32_t next_stream_number() {
  static std::atomic<std::uint32_t> count{0};
  return count++;
}

// Handles that are alive, default streams left out. Under host_mutex().
std::set<cudaStream_t>& known_streams() {
  static auto* the = new std::set<cudaStream_t>;
  return *the;
}

// `later` begins after all that is in `earlier` now.
void order(CUstream_st& earlier, CUstream_st& later) {
  if (&earlier == &later) return;
  later.wait_for(earlier.record());
  later.clock.merge(earlier.clock);
}

}  // namespace

void order_with_default(CUstream_st& stream) {
  Device& device = *device_at(stream.device);
  if (&stream == device.default_stream) {
    for (cudaStream_t other : device.streams)
      if (!(other->flags & cudaStreamNonBlocking) && !other->is_capturing()) order(*other, stream);
  } else if (!(stream.flags & cudaStreamNonBlocking)) {
    order(*device.default_stream, stream);
  }
}

void Signal::set() {
  {
    std::lock_guard lock(mutex_);
    set_ = true;
    time_ = std::chrono::steady_clock::now();
  }
  changed_.notify_all();
}

bool Signal::is_set() const {
  std::lock_guard lock(mutex_);
  return set_;
}

void Signal::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return set_; });
}

std::chrono::steady_clock::time_point Signal::time() const {
  std::lock_guard lock(mutex_);
  return time_;
}

cudaStream_t resolve(cudaStream_t stream) {
  std::lock_guard lock(host_mutex());
  if (stream == nullptr || stream == cudaStreamLegacy) {
    Device* device = device_at(current_device());
    return device == nullptr ? nullptr : device->default_stream;
  }
  return known_streams().count(stream) != 0 ? stream : nullptr;
}

cudaError_t enqueue(cudaStream_t stream, const std::string& name, Work work) {
  std::lock_guard lock(host_mutex());
  if (const cudaError_t error = refuse_default_stream(*stream); error != cudaSuccess) return error;
  if (stream->is_capturing()) {
    if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    capture_operation(*stream, name, std::move(work));
    return cudaSuccess;
  }
  order_with_default(*stream);
  stream->clock.merge(host_clock());
  const std::uint32_t count = ++stream->operations;
  // Numbers of operations begin at 1: a clock of 0 knows none.
  stream->clock.set(stream->number, count);
  const std::uint32_t id = add_operation({name, stream->number, count, stream->clock});
  stream->push([device = stream->device, id, known = stream->clock, work = std::move(work)] {
    if (error_of_device(device) != cudaSuccess) return;
    try {
      work(id, known);
    } catch (const KernelFault& fault) {
      break_device(device, fault);
    }
  });
  return cudaSuccess;
}

void add_stream(cudaStream_t stream) {
  std::lock_guard lock(host_mutex());
  known_streams().insert(stream);
  device_at(stream->device)->streams.push_back(stream);
}

void remove_stream(cudaStream_t stream) {
  std::lock_guard lock(host_mutex());
  known_streams().erase(stream);
  std::erase(device_at(stream->device)->streams, stream);
}

void wait_for_stream(cudaStream_t stream) {
  std::shared_ptr<Signal> signal;
  VectorClock clock;
  {
    std::lock_guard lock(host_mutex());
    signal = stream->record();
    clock = stream->clock;
  }
  signal->wait();
  std::lock_guard lock(host_mutex());
  host_clock().merge(clock);
}

void wait_for_device(int index) {
  std::vector<std::shared_ptr<Signal>> signals;
  VectorClock clock;
  {
    std::lock_guard lock(host_mutex());
    Device& device = *device_at(index);
    std::vector<cudaStream_t> streams = device.streams;
    streams.push_back(device.default_stream);
    for (cudaStream_t stream : streams) {
      signals.push_back(stream->record());
      clock.merge(stream->clock);
    }
  }
  for (const auto& signal : signals) signal->wait();
  std::lock_guard lock(host_mutex());
  host_clock().merge(clock);
}

}  // namespace vgpu

CUstream_st::CUstream_st(int device_, unsigned flags_, int priority_)
    : device(device_),
      flags(flags_),
      priority(priority_),
      number(vgpu::next_stream_number()),
      thread_([this] { loop(); }) {}

CUstream_st::~CUstream_st() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CUstream_st::push(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

bool CUstream_st::idle() {
  std::lock_guard lock(mutex_);
  return tasks_.empty() && !busy_;
}

std::shared_ptr<vgpu::Signal> CUstream_st::record() {
  auto signal = std::make_shared<vgpu::Signal>();
  push([signal] { signal->set(); });
  return signal;
}

void CUstream_st::wait_for(std::shared_ptr<vgpu::Signal> signal) {
  push([signal = std::move(signal)] { signal->wait(); });
}

void CUstream_st::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !tasks_.empty() || ending_; });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    task();
    lock.lock();
    busy_ = false;
  }
}
