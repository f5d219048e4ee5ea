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
};

struct CUstream_st {
  CUstream_st(int device, unsigned flags);
  ~CUstream_st();  // carries out what is queued

  const int device;
  const unsigned flags;
  const std::uint32_t number;

  // The rest under host_mutex().
  vgpu::VectorClock clock;    // what is over when the next operation begins
  std::uint32_t operations = 0;

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

void add_stream(cudaStream_t stream);
void remove_stream(cudaStream_t stream);

// Enqueues an operation in the order that CUDA gives it, the default stream's waits included.
// `work` gets the operation's id and clock; what it throws as KernelFault breaks the device.
void enqueue(cudaStream_t stream, const std::string& name,
             std::function<void(std::uint32_t id, const VectorClock& known)> work);

// Waits for all that is in the stream; afterwards the host knows it to be over.
void wait_for_stream(cudaStream_t stream);

}  // namespace vgpu
