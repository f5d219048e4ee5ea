// A range of memory that an operation of a stream reads or writes: for copies, fills and the
// libraries' stand-ins, which come by the same checks as kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/allocation.h"
#include "vgpu/runtime/operation.h"

namespace vgpu {

struct MemoryRange {
  Allocation* allocation = nullptr;  // null: plain memory of the host
  std::size_t offset = 0;            // in the allocation
  std::size_t bytes = 0;

  bool is_device() const { return allocation != nullptr && allocation->device != kHostDevice; }
};

// At the time of a call: whether the range may be used at all, else cudaErrorInvalidValue.
cudaError_t look_up(const void* pointer, std::size_t bytes, MemoryRange& range);

// At the time of the operation: notes what it does there. Throws KernelFault for freed memory, for
// bytes that nobody has written if `initialized` is asked for, and for a race between streams.
// Under an ExecutionLock.
void note_read(const MemoryRange& range, const char* name, std::uint32_t id,
               const VectorClock& known, bool initialized = false);
void note_write(const MemoryRange& range, const char* name, std::uint32_t id,
                const VectorClock& known);
// All bytes count as written; or, after a copy, those that were written at their origin.
void mark_written(const MemoryRange& to);
void mark_copied(const MemoryRange& to, const MemoryRange& from);

// The allocation that begins at the pointer and is alive, else null.
Allocation* allocation_at(const void* pointer);

}  // namespace vgpu
