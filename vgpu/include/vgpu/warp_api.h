// What the lanes of a warp do together: shuffles, votes, matches, reductions.
#pragma once

#include <cstdint>

#include "vgpu/bits.h"
#include "vgpu/thread.h"

inline constexpr int warpSize = vgpu::kWarpSize;

inline void __syncwarp(unsigned mask = ~0u) { vgpu::warp_barrier(mask); }
inline unsigned __activemask() { return vgpu::active_mask(); }

namespace vgpu {

// What lane `source` has brought; the own value where it is outside the segment.
template <class T>
T shuffle(unsigned mask, T value, int source, bool inside) {
  const LaneValues all = exchange(WarpOp::kShuffle, mask, to_bits(value));
  if (!inside) return value;
  if (!((mask >> source) & 1u)) trap("a shuffle reads a lane that is not in its mask");
  if (!((all.came >> source) & 1u)) trap("a shuffle reads a lane that has ended");
  return from_bits<T>(all.of[source][0]);
}

}  // namespace vgpu

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int first = vgpu::lane_id() / width * width;
  return vgpu::shuffle(mask, value, first + (source & (width - 1)), true);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = vgpu::lane_id(), source = lane - static_cast<int>(delta);
  return vgpu::shuffle(mask, value, source, source >= lane / width * width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = vgpu::lane_id(), source = lane + static_cast<int>(delta);
  return vgpu::shuffle(mask, value, source, source < lane / width * width + width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize) {
  const int lane = vgpu::lane_id(), source = lane ^ lanes;
  return vgpu::shuffle(mask, value, source, source < lane / width * width + width);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const auto all = vgpu::exchange(vgpu::WarpOp::kVote, mask, predicate != 0);
  unsigned votes = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    if ((all.came >> lane) & 1u) votes |= static_cast<unsigned>(all.of[lane][0]) << lane;
  return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  const std::uint64_t own = vgpu::to_bits(value);
  const auto all = vgpu::exchange(vgpu::WarpOp::kMatch, mask, own);
  unsigned same = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    if (((all.came >> lane) & 1u) && all.of[lane][0] == own) same |= 1u << lane;
  return same;
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_same) {
  const std::uint64_t own = vgpu::to_bits(value);
  const auto all = vgpu::exchange(vgpu::WarpOp::kMatch, mask, own);
  bool same = true;
  for (int lane = 0; lane < warpSize; ++lane)
    same = same && (!((all.came >> lane) & 1u) || all.of[lane][0] == own);
  *all_same = same;
  return same ? all.came : 0u;
}

namespace vgpu {

template <class T, class Op>
T warp_reduce(unsigned mask, T value, Op op) {
  const LaneValues all = exchange(WarpOp::kReduce, mask, to_bits(value));
  bool first = true;
  T result{};
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if (!((all.came >> lane) & 1u)) continue;
    const T other = from_bits<T>(all.of[lane][0]);
    result = first ? other : op(result, other);
    first = false;
  }
  return result;
}

}  // namespace vgpu

inline int __reduce_add_sync(unsigned mask, int value) {
  return static_cast<int>(vgpu::warp_reduce(mask, static_cast<unsigned>(value),
                                            [](unsigned a, unsigned b) { return a + b; }));
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  return vgpu::warp_reduce(mask, value, [](unsigned a, unsigned b) { return a + b; });
}
template <class T>
T __reduce_max_sync(unsigned mask, T value) {
  return vgpu::warp_reduce(mask, value, [](T a, T b) { return a > b ? a : b; });
}
template <class T>
T __reduce_min_sync(unsigned mask, T value) {
  return vgpu::warp_reduce(mask, value, [](T a, T b) { return a < b ? a : b; });
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) {
  return vgpu::warp_reduce(mask, value, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return vgpu::warp_reduce(mask, value, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  return vgpu::warp_reduce(mask, value, [](unsigned a, unsigned b) { return a ^ b; });
}
