// The vector types of simd.h, and how their bits are read as another type. Internal: not for
// embedders.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

// On a lambda or function that must be compiled for its caller's instruction set.
#define LOCKSTEP_SIMD __attribute__((always_inline))
#define LOCKSTEP_SIMD_FN __attribute__((always_inline)) inline

namespace lockstep::kernels {

using F32Lanes = float __attribute__((vector_size(64)));
using F64Lanes = double __attribute__((vector_size(64)));
using I32Lanes = std::int32_t __attribute__((vector_size(64)));
using U32Lanes = std::uint32_t __attribute__((vector_size(64)));
using U16Lanes = std::uint16_t __attribute__((vector_size(32)));

// Lanes that values of T are computed in: f64 for double, f32 for all else.
template <class T>
using Lanes = std::conditional_t<std::is_same_v<T, double>, F64Lanes, F32Lanes>;
template <class T>
inline constexpr std::int64_t kLanes = std::is_same_v<T, double> ? 8 : 16;

template <class To, class From>
LOCKSTEP_SIMD_FN To lanes_cast(From from) {  // same bits
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace lockstep::kernels
