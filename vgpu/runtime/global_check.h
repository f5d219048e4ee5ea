// The checks of accesses to device memory: bounds, bytes never written, races between the blocks of
// a launch and between operations.
#pragma once

#include <cstdint>
#include <string>

#include "vgpu/runtime/access.h"
#include "vgpu/runtime/allocation.h"
#include "vgpu/runtime/block.h"

namespace vgpu {

void check_global(Thread& thread, std::uintptr_t address, std::size_t bytes, AccessKind kind);

// Notes what an operation does to a range and returns what it races with; "" for nothing.
std::string note_operation(Allocation& allocation, std::size_t offset, std::size_t bytes,
                           bool write, bool atomic, std::uint32_t id, const VectorClock& known);

// A fence and an atomic: what the calling block did before is over for whoever does an atomic on
// the same address afterwards.
void order_blocks(Thread& thread, std::uintptr_t address);

// Forgets the last launch's order. At the start of a launch.
void forget_block_order();

}  // namespace vgpu
