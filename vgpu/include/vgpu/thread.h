// The thread of a kernel that is running, and what it asks of its warp and block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "vgpu/vector_types.h"

// Of the kernel thread that runs: set whenever one goes on. For the host they mean nothing.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace vgpu {

inline constexpr int kWarpSize = 32;

struct ThreadPlace {
  uint3 thread{}, block{};
  dim3 block_size, grid_size;
};

// Barriers of the block: all threads that have not ended must come. What each gets of all votes.
enum class BlockVote { kNone, kCount, kAnd, kOr };
// `site` is the place in the program: all must wait at the same.
int block_barrier(BlockVote vote, int predicate, const std::source_location& site);
// Barrier of the lanes in `mask`.
void warp_barrier(unsigned mask);

// What each lane in the mask has brought; all of them that have not ended must come with the same
// kind and mask.
enum class WarpOp : std::uint8_t { kShuffle, kVote, kMatch, kReduce, kMatrix };
struct LaneValues {
  std::uint64_t of[kWarpSize][2];  // of lanes that did not come: 0
  unsigned came = 0;               // the lanes in the mask that have not ended
};
LaneValues exchange(WarpOp kind, unsigned mask, std::uint64_t low, std::uint64_t high = 0);
int lane_id();
unsigned active_mask();  // lanes of the warp that have not ended

// The dynamic shared memory of the block.
void* dynamic_shared_memory();

// Called where a thread reads a flag atomically: one that does so again and again must not keep the
// processor from whoever is to set it, be it of another block's stream, device or process. Outside
// kernels it does nothing.
void poll(const void* flag);
// Lets others go on.
void nanosleep();

// Ends the kernel with a fault.
[[noreturn]] void trap(const char* text);

}  // namespace vgpu
