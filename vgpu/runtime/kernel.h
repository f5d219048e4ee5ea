// Running one kernel: its blocks one after the other, the threads of a block as fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vgpu/include/vgpu/executor.h"
#include "vgpu/runtime/fault.h"
#include "vgpu/runtime/operation.h"

namespace vgpu {

struct KernelLaunch {
  std::string name;
  dim3 grid, block;
  std::size_t dynamic_shared = 0;  // bytes
  std::shared_ptr<const KernelCall> call;
  int device = 0;
  const void* function = nullptr;
};

// Returns the first fault, which ends the kernel. `id` is the launch's operation, `known` its
// clock.
std::optional<KernelFault> run_kernel(const KernelLaunch& launch, std::uint32_t id,
                                      const VectorClock& known);

}  // namespace vgpu
