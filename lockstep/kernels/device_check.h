// Where an op's tensors are. Internal: not for embedders.
#pragma once

#include <initializer_list>
#include <span>

#include "lockstep/kernels/operand.h"

namespace lockstep::kernels {

// The one device that all defined tensors are on; throws Error naming both where there are two.
Device common_device(const char* op, std::initializer_list<const Tensor*> tensors);
Device common_device(const char* op, std::span<const Operand> operands);

// For kernels that only the CPU has: throws Error naming op and device for any other.
void require_cpu(const char* op, std::initializer_list<const Tensor*> tensors);

}  // namespace lockstep::kernels
