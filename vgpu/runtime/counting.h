// Where the calls of the API are counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace vgpu {

struct Counting {
  std::atomic<std::uint64_t> launches{0}, graph_launches{0}, allocations{0}, host_waits{0},
      copies{0}, bytes_copied{0};
};
Counting& counting();
void count_launch(const std::string& kernel);

}  // namespace vgpu
