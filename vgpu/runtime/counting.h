// Where the calls of the API are counted.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu {

struct Counting {
  std::atomic<std::uint64_t> launches{0}, allocations{0}, host_waits{0}, copies{0};
};
Counting& counting();

}  // namespace vgpu
