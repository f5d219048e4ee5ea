// The environment's wishes, read once: LOCKSTEP_VGPU_DEVICES, _MEMORY, _SEED, _CHECK, _LOG,
// _DEADLINE, _EXECUTOR // and CUDA_VISIBLE_DEVICES.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vgpu/runtime/fault.h"

namespace vgpu {

struct Settings {
  int devices = 2;                            // LOCKSTEP_VGPU_DEVICES, 0 to 16
  std::size_t memory = std::size_t{1} << 30;  // bytes per device, LOCKSTEP_VGPU_MEMORY
  std::uint64_t seed = 0;                     // of all orders that CUDA leaves open
  unsigned checks = ~0u;                      // bit per FaultKind

  std::vector<int> visible;  // CUDA_VISIBLE_DEVICES; empty: all, in order
  double deadline = 600;     // seconds that a kernel may run, LOCKSTEP_VGPU_DEADLINE
  bool log = false;          // LOCKSTEP_VGPU_LOG: faults to stderr as well
  std::string executor;      // a library that runs the kernels instead (vgpu/executor.h)

  int physical_device(int index) const {
    return visible.empty() ? index : visible[static_cast<std::size_t>(index)];
  }
  bool checks_for(FaultKind kind) const { return (checks >> static_cast<int>(kind)) & 1u; }
};

// LOCKSTEP_VGPU_CHECK is "all" (the default), "none" or a list of bounds, align, init, shared,
// block, stream with commas. What cannot be read throws std::invalid_argument.
Settings settings_from_environment();

// The process's settings. Tests may change them while no kernel runs.
Settings& settings();

}  // namespace vgpu
