// Stream: work that runs in order, beside the caller. Event: a place in a stream that others can
// wait for. One interface for all devices: on the CPU a stream is a thread, on a CUDA device
// CUDA's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "lockstep/core/device.h"

struct CUstream_st;  // cudaStream_t points at it

namespace lockstep {

// Long enough for any real work, short enough for a forgotten one to be found.
inline constexpr std::chrono::nanoseconds kStreamTimeout = std::chrono::minutes(30);

namespace detail {
class EventState;
class StreamState;
}  // namespace detail

// A handle; copies mean the same event. Thread-safe.
class Event {
 public:
  // One that has happened.
  Event();

  // Whether all that was in the stream before the event is done, well or not. Never waits.
  bool query() const;
  // Waits for that; rethrows what a task before the event has thrown. Throws TimeoutError.
  void synchronize(std::chrono::nanoseconds timeout = kStreamTimeout) const;
  // From `start` to this event, both of which must have happened, else Error.
  std::chrono::nanoseconds since(const Event& start) const;

 private:
  friend class Stream;
  explicit Event(std::shared_ptr<detail::EventState> state);
  std::shared_ptr<detail::EventState> state_;
};

// On CUDA devices: which of two streams with work goes first.
enum class StreamPriority { kNormal, kHigh };

// A handle; copies mean the same stream. Thread-safe. With the last handle the stream ends, once
// its tasks have run.
//
// A task that throws fails the stream: later tasks are dropped, their events fail with the same
// error, and the next synchronize() rethrows it, after which the stream can be used again.
//
// On a CUDA device kernels and copies go to the thread's current stream (current_stream.h); an
// error of the device stays with the process, as CUDA's do.
class Stream {
 public:
  // A new stream; its thread starts with the first task. Throws Error where there is no such
  // device.
  static Stream create(Device device = kCpu, StreamPriority priority = StreamPriority::kNormal);
  // The one that a CUDA device has from the start. Lives as long as the process.
  static Stream default_of(Device device);

  Device device() const;
  // Runs the task after all that was enqueued before it. A CUDA stream's tasks run on a thread of
  // the driver: they may not call CUDA.
  void enqueue(std::function<void()> task);
  // The event of all that has been enqueued so far.
  Event record();
  // What is enqueued from now on waits for the event, which may be another stream's, and fails if
  // that has failed. The caller does not wait.
  void wait(const Event& event);
  // Whether nothing is queued or running.
  bool query() const;
  // Waits until nothing is; rethrows the error of a failed task. Throws TimeoutError. Not to be
  // called from a task of this stream.
  void synchronize(std::chrono::nanoseconds timeout = kStreamTimeout);
  // CUDA's handle (cudaStream_t); null on the CPU and for a device's default stream.
  CUstream_st* native() const;
  // The same stream.
  bool operator==(const Stream& other) const { return state_ == other.state_; }

 private:
  explicit Stream(std::shared_ptr<detail::StreamState> state);
  std::shared_ptr<detail::StreamState> state_;
};

// How often this process has waited for CUDA devices so far: synchronize() of their streams and
// events, item(), and copies from or to memory that is not pinned. What a step should not do.
std::uint64_t host_synchronizations();

}  // namespace lockstep
