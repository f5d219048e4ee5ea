// The stream that a thread's CUDA work goes to: one per thread and device, the device's default
// stream at first.
#pragma once

#include "lockstep/core/stream.h"

namespace lockstep {

Stream current_stream(Device device);
// CUDA's handle of it, at the cost of a look-up.
CUstream_st* current_native_stream(Device device);

// Makes `stream` the current one of its device, and that device the thread's current one, and puts
// both back at the end. A CPU stream changes nothing.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream former_;
  int former_device_ = -1;
};

}  // namespace lockstep
