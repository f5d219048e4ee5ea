// Every load and store of a kernel comes by here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "vgpu/runtime/operation.h"

namespace vgpu {

struct Thread;

// The kernel that the calling OS thread runs.
struct RunningKernel {
  std::uint32_t id = 0;  // its operation
  const VectorClock* known = nullptr;
  std::uintptr_t shared_begin = 0;  // dynamic shared memory
  std::size_t shared_bytes = 0;
  std::chrono::steady_clock::time_point deadline;
  std::uint32_t accesses = 0;
};
extern thread_local RunningKernel running_kernel;

enum class AccessKind : std::uint8_t { kRead, kWrite, kAtomic, kAtomicRead };
constexpr bool writes(AccessKind kind) {
  return kind == AccessKind::kWrite || kind == AccessKind::kAtomic;
}
constexpr bool is_atomic(AccessKind kind) { return kind >= AccessKind::kAtomic; }

// Outside kernels: returns at once. Throws KernelFault, which ends the kernel.
void note_access(const void* address, std::size_t bytes, AccessKind kind);

// A kernel that has run for longer than the settings allow ends with a fault.
void check_deadline(Thread& thread);

// From here on, or no longer, the accesses of the calling kernel thread are looked at.
void check_accesses(bool on);

}  // namespace vgpu
