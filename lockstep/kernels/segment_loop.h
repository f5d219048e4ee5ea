// How the fused optimizer kernels walk many tensors in one pass: chunks over all segments, shared
// out to threads, each with the widest instruction set. Internal.
//
// The loops are element-wise and compiled without fused multiply-add (CMakeLists.txt), so that a
// result depends neither on the instruction set nor on the number of threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lockstep/core/half.h"
#include "lockstep/core/tensor.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/isa.h"

namespace lockstep::kernels {

// The type in which optimizer state is kept and arithmetic done: f64 for f64, f32 for the rest.
template <class T>
using StateOf = Accumulator<T>;
constexpr DType state_dtype(DType dtype) { return dtype == kF64 ? kF64 : kF32; }

// Bits of a half or bfloat16 to f32 and back, to nearest with ties to even; without a branch, so
// that loops over them vectorise.
[[gnu::always_inline]] inline float f32_of_half(std::uint32_t h) {
  const std::uint32_t magnitude = (h & 0x7fffu) << 13;
  const std::uint32_t exponent = magnitude & 0x0f800000u;
  const std::uint32_t normal = magnitude + (112u << 23);
  // Subnormal halves are exact f32 differences.
  const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(normal + (1u << 23)) -
                                                      std::bit_cast<float>(113u << 23));
  std::uint32_t bits = exponent == 0 ? subnormal : normal;
  bits = exponent == 0x0f800000u ? normal + (112u << 23) : bits;
  return std::bit_cast<float>(bits | ((h & 0x8000u) << 16));
}
[[gnu::always_inline]] inline std::uint16_t half_of_f32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t u = bits & 0x7fffffffu;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(u) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (u - (112u << 23) + 0xfffu + ((u >> 13) & 1u)) >> 13;
  std::uint32_t h = u < (113u << 23) ? subnormal : normal;
  h = u >= (143u << 23) ? 0x7c00u : h;
  h = u > (255u << 23) ? 0x7e00u : h;
  return static_cast<std::uint16_t>(h | ((bits >> 16) & 0x8000u));
}
[[gnu::always_inline]] inline float f32_of_bfloat16(std::uint32_t b) {
  return std::bit_cast<float>(b << 16);
}
[[gnu::always_inline]] inline std::uint16_t bfloat16_of_f32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

template <class T>
[[gnu::always_inline]] inline StateOf<T> load_value(const T& x) {
  if constexpr (sizeof(T) == 2) {
    const auto bits = std::bit_cast<std::uint16_t>(x);
    return std::is_same_v<T, Half> ? f32_of_half(bits) : f32_of_bfloat16(bits);
  } else {
    return x;
  }
}
template <class T>
[[gnu::always_inline]] inline void store_value(T& to, StateOf<T> x) {
  if constexpr (sizeof(T) == 2) {
    const std::uint16_t bits = std::is_same_v<T, Half> ? half_of_f32(x) : bfloat16_of_f32(x);
    std::memcpy(static_cast<void*>(&to), &bits, sizeof(bits));
  } else {
    to = x;
  }
}

#if defined(__x86_64__)
template <class F>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] void call_avx512(F& f) {
  f();
}
template <class F>
[[gnu::target("avx2,fma")]] void call_avx2(F& f) {
  f();
}
#endif

// Runs f, an always_inline lambda, compiled for the instruction set.
template <class F>
void call_at(Isa isa, F&& f) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return call_avx512(f);
  if (isa == Isa::kAvx2) return call_avx2(f);
#endif
  f();
}

inline constexpr std::int64_t kSegmentChunk = 16384;  // elements

struct SegmentChunk {
  std::int64_t segment, begin, end;
};

// Cuts every segment into chunks of kSegmentChunk elements; numel(i) is the size of segment i.
template <class Numel>
std::vector<SegmentChunk> cut_segments(std::int64_t count, Numel&& numel) {
  std::vector<SegmentChunk> chunks;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t n = numel(i);
    for (std::int64_t begin = 0; begin < n; begin += kSegmentChunk)
      chunks.push_back({i, begin, std::min(n, begin + kSegmentChunk)});
  }
  return chunks;
}

// body(chunk index, chunk), on the rank's threads; one takes at least four chunks.
template <class Body>
void for_each_chunk(const std::vector<SegmentChunk>& chunks, Body&& body) {
  parallel_for(static_cast<std::int64_t>(chunks.size()), 4,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   body(i, chunks[static_cast<std::size_t>(i)]);
               });
}

}  // namespace lockstep::kernels
