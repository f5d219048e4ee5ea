// Kernels that a library runs in the virtual GPU's place: LOCKSTEP_VGPU_EXECUTOR.
#pragma once

#include <optional>

#include "vgpu/runtime/kernel.h"

namespace vgpu {

std::optional<KernelFault> run_elsewhere(const KernelLaunch& launch);

}  // namespace vgpu
