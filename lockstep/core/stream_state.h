// What the handles Stream and Event point at, per kind of device. Internal: not for embedders.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/core/device.h"

struct CUstream_st;  // cudaStream_t points at it
struct CUevent_st;

namespace lockstep::detail {

class EventState {
 public:
  virtual ~EventState() = default;
  virtual bool query() const = 0;
  virtual void synchronize(std::chrono::nanoseconds timeout) const = 0;
  // The error of the work before it, once that is done.
  virtual std::exception_ptr await() const = 0;
  // Since `start`, an event of the same kind; nothing where one of them has not happened.
  virtual std::optional<std::chrono::nanoseconds> since(const EventState& start) const = 0;
  virtual CUevent_st* native() const { return nullptr; }
};

class StreamState {
 public:
  virtual ~StreamState() = default;
  virtual Device device() const = 0;
  virtual void enqueue(std::function<void()> task) = 0;
  virtual std::shared_ptr<EventState> record() = 0;
  virtual void wait(const std::shared_ptr<EventState>& event) = 0;
  virtual bool query() const = 0;
  virtual void synchronize(std::chrono::nanoseconds timeout) = 0;
  virtual CUstream_st* native() const { return nullptr; }
};

// Defined by stream_cuda.cpp, or device_none.cpp in a build without CUDA.
std::shared_ptr<StreamState> make_cuda_stream(Device device, bool high_priority);
// The device's default stream.
std::shared_ptr<StreamState> default_cuda_stream(Device device);

}  // namespace lockstep::detail
