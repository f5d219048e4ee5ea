// The CUDA device that a thread works on, for one scope.
#pragma once

#include "lockstep/core/device.h"

namespace lockstep {

// Makes the device the thread's current one and puts the former back at the end. For the CPU it
// does nothing. Throws Error where there is no such device.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int former_ = -1;  // -1: nothing to put back
};

// The thread's current CUDA device; cuda:0 at first.
Device current_cuda_device();

}  // namespace lockstep
