// What a program asked of the virtual GPU so far: for tests that count.
#pragma once

#include <cstdint>

namespace vgpu {

struct Counters {
  std::uint64_t launches = 0;     // of kernels
  std::uint64_t allocations = 0;  // cudaMalloc, cudaMallocAsync, pinned memory
  std::uint64_t host_waits = 0;   // calls in which the host waits for a device
  std::uint64_t copies = 0;       // copies and fills
};

Counters counters();

}  // namespace vgpu
