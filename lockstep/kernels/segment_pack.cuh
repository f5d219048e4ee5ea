// Many tensors in one launch: their addresses and sizes travel as a kernel argument, and each block
// finds its tensor by its number. Internal: device code.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/kernel_launch.cuh"
#include "lockstep/kernels/device_element.cuh"

namespace lockstep::kernels::cuda {

inline constexpr int kPackSegments =
    24;  // with five pointers each well within the 4 KiB of arguments
inline constexpr int kPackBlock = 256;
inline constexpr std::uint64_t kPackElements = kPackBlock * 4;  // of one block

// Segment: a plain struct with a member `std::uint64_t n`, its number of elements.
template <class Segment>
struct SegmentPack {
  Segment segments[kPackSegments];
  unsigned first_block[kPackSegments];  // by segment
  int count;
};

// Where the calling thread works: elements begin … begin + 3 of one segment, if they are below n.
template <class Segment>
__device__ __forceinline__ const Segment& segment_of_block(const SegmentPack<Segment>& pack,
                                                           std::uint64_t& begin) {
  int s = 0;
  while (s + 1 < pack.count && pack.first_block[s + 1] <= blockIdx.x) ++s;
  begin = std::uint64_t{blockIdx.x - pack.first_block[s]} * kPackElements + threadIdx.x * 4u;
  return pack.segments[s];
}

// launch(pack, number of blocks) for the segments, as many at once as fit; empty ones are left out.
template <class Segment, class Launch>
void for_each_pack(const std::vector<Segment>& segments, Launch&& launch) {
  SegmentPack<Segment> pack{};
  std::uint64_t blocks = 0;
  const auto flush = [&] {
    if (pack.count > 0) launch(pack, static_cast<unsigned>(blocks));
    pack.count = 0;
    blocks = 0;
  };
  for (const Segment& segment : segments) {
    if (segment.n == 0) continue;
    const std::uint64_t own = (segment.n + kPackElements - 1) / kPackElements;
    if (pack.count == kPackSegments || blocks + own > 0x7fffffffu) flush();
    pack.segments[pack.count] = segment;
    pack.first_block[pack.count] = static_cast<unsigned>(blocks);
    ++pack.count;
    blocks += own;
  }
  flush();
}

// Four neighbours at once where all are there and the address allows it, else one by one.
template <class T, class C>
__device__ __forceinline__ void load_four(const T* from, std::uint64_t begin, std::uint64_t n,
                                          C (&values)[4]) {
  if (n - begin >= 4 && reinterpret_cast<std::uintptr_t>(from + begin) % (4 * sizeof(T)) == 0 &&
      sizeof(T) <= 4) {
    const auto v = load_vector<4>(from + begin);
    for (int i = 0; i < 4; ++i) values[i] = convert_element<C>(v.value[i]);
    return;
  }
  for (int i = 0; i < 4; ++i)
    values[i] = begin + i < n ? convert_element<C>(from[begin + i]) : C(0);
}
template <class T, class C>
__device__ __forceinline__ void store_four(T* to, std::uint64_t begin, std::uint64_t n,
                                           const C (&values)[4]) {
  if (n - begin >= 4 && reinterpret_cast<std::uintptr_t>(to + begin) % (4 * sizeof(T)) == 0 &&
      sizeof(T) <= 4) {
    AlignedVector<T, 4> v;
    for (int i = 0; i < 4; ++i) v.value[i] = convert_element<T>(values[i]);
    store_vector(to + begin, v);
    return;
  }
  for (int i = 0; i < 4; ++i)
    if (begin + i < n) to[begin + i] = convert_element<T>(values[i]);
}

}  // namespace lockstep::kernels::cuda
