// Running one kernel: its blocks one after the other, the threads of a block as fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "vgpu/include/vgpu/vector_types.h"
#include "vgpu/runtime/fault.h"
#include "vgpu/runtime/operation.h"

namespace vgpu {

struct KernelLaunch {
  std::string name;
  dim3 grid, block;
  std::size_t dynamic_shared = 0;  // bytes
  std::function<void()> body;      // one thread
  int device = 0;
};

// Returns the first fault, which ends the kernel. `id` is the launch's operation, `known` its
// clock.
std::optional<KernelFault> run_kernel(const KernelLaunch& launch, std::uint32_t id,
                                      const VectorClock& known);

}  // namespace vgpu
