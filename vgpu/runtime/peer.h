// Which memory beside its own a device may touch: that of peers, and registered memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu {

// Whether kernels of `device` may touch memory that lies on `owner`.
bool may_access(int device, int owner);

// Whether the bytes lie in memory that cudaHostRegister was called for.
bool is_registered(std::uintptr_t address, std::size_t bytes);

// Without the checks of cudaDeviceEnablePeerAccess.
void enable_peer(int device, int peer);

}  // namespace vgpu
