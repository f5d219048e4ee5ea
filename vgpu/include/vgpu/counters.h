// What a program asked of the virtual GPU so far: for tests that count.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace vgpu {

struct Counters {
  std::uint64_t launches = 0;        // of kernels, on streams or into a capture
  std::uint64_t graph_launches = 0;  // the kernels in them are not counted again
  std::uint64_t allocations = 0;     // cudaMalloc, cudaMallocAsync, pinned memory
  std::uint64_t host_waits = 0;      // calls in which the host waits for a device
  std::uint64_t copies = 0;          // copies and fills
  std::uint64_t bytes_copied = 0;    // without fills
};

Counters counters();
std::map<std::string, std::uint64_t> launches_by_name();

}  // namespace vgpu
