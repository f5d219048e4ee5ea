// The devices of the process: their streams, and what went wrong on them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/fault.h"
#include "vgpu/runtime/operation.h"

namespace vgpu {

struct Device {
  int index = 0;
  cudaStream_t default_stream = nullptr;
  std::vector<cudaStream_t> streams;  // without the default one
};

// One lock for all that the host does: calls are short, and their order is the order of streams.
std::recursive_mutex& host_mutex();

int current_device();
// Null if there is no such device.
Device* device_at(int index);

// Sticky: every later call of the device that waits or launches gives this error.
void break_device(int index, const KernelFault& fault);
cudaError_t error_of_device(int index);

// What the host knows to be over.
VectorClock& host_clock();

// Notes the error for cudaGetLastError and returns it.
cudaError_t fail(cudaError_t error);

}  // namespace vgpu
