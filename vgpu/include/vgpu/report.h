// The text of the last fault of a device: which kernel, block and thread did what.
#pragma once

#include <string>

namespace vgpu {

// "" where there was none.
std::string last_fault(int device);
// Devices as new: faults forgotten. For tests; no stream may be at work.
void forget_faults();

}  // namespace vgpu
