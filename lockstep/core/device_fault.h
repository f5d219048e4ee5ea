// What a kernel finds wrong in its data (an index out of range) reaches the host without a wait: it
// is written to memory that both see, and thrown by the next wait for a stream or event. Internal.
#pragma once

namespace lockstep::cuda {

inline constexpr int kFaultValues = 5;

// The first fault since the last one was thrown.
struct DeviceFault {
  unsigned state;    // 0: none, 1: being written, 2: there
  const char* text;  // on the host, with {} for each value in turn
  long long values[kFaultValues];
};

// One of the process, for all devices: pinned host memory that kernels can write.
DeviceFault* device_fault();

// Throws Error with its text if there is one, and forgets it.
void throw_device_fault();

}  // namespace lockstep::cuda
