// Streams as threads: each carries out its tasks in order, beside the host and other streams.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/capture.h"
#include "vgpu/runtime/ipc_event.h"
#include "vgpu/runtime/operation.h"

namespace vgpu {

// A place in a stream that others wait for.
class Signal {
 public:
  void set();
  bool is_set() const;
  void wait() const;
  std::chrono::steady_clock::time_point time() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
  std::chrono::steady_clock::time_point time_;
};

}  // namespace vgpu

struct CUevent_st {
  int device = 0;
  unsigned flags = 0;
  std::shared_ptr<vgpu::Signal> signal;  // of the last record; null: never recorded
  vgpu::VectorClock clock;
  std::shared_ptr<vgpu::Capture> capture;  // that it was last recorded in
  std::size_t point = 0;                   // of the capture
  std::shared_ptr<vgpu::IpcEvent> shared;  // with other processes
};

struct CUstream_st {
  CUstream_st(int device, unsigned flags, int priority = 0);
  ~CUstream_st();  // carries out what is queued

  const int device;
  const unsigned flags;
  const int priority;
  const std::uint32_t number;

  // The rest under host_mutex().
  vgpu::VectorClock clock;  // what is over when the next operation begins
  std::uint32_t operations = 0;
  std::shared_ptr<vgpu::Capture> capture;  // null: what is enqueued is carried out
  std::size_t branch = 0;                  // of the capture

  bool is_capturing() const { return capture != nullptr; }
  bool idle();
  void push(std::function<void()> task);
  std::shared_ptr<vgpu::Signal> record();
  void wait_for(std::shared_ptr<vgpu::Signal> signal);

 private:
  void loop();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

namespace vgpu {

// The stream meant by a handle, null being the device's default stream; null if it is not one.
cudaStream_t resolve(cudaStream_t stream);

// The rule of the default stream: it waits for all streams that do not refuse, and they for it.
// Under host_mutex().
void order_with_default(CUstream_st& stream);

void add_stream(cudaStream_t stream);
void remove_stream(cudaStream_t stream);

// Enqueues an operation in the order that CUDA gives it, the default stream's waits included.
// `work` gets the operation's id and clock; what it throws as KernelFault breaks the device. On a
// capturing stream it becomes a step of the graph.
cudaError_t enqueue(cudaStream_t stream, const std::string& name, Work work);

// Waits for all that is in the stream; afterwards the host knows it to be over.
void wait_for_stream(cudaStream_t stream);
void wait_for_device(int device);

}  // namespace vgpu
