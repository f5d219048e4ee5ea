// Elements of any floating dtype inside files that are compiled once per instruction set. Internal:
// to be included by *_simd.cpp only. Everything here lives in a namespace of the instruction set,
// so that the linker never mixes the copies.
#pragma once

#include <cstdint>

#include "lockstep/core/dtype.h"

namespace lockstep::kernels::LOCKSTEP_ISA {

#define LOCKSTEP_ELEMENT_FN __attribute__((always_inline)) static inline

struct HalfBits {
  std::uint16_t bits;
};
struct BFloat16Bits {
  std::uint16_t bits;
};

LOCKSTEP_ELEMENT_FN float as_float(std::uint32_t u) { return __builtin_bit_cast(float, u); }
LOCKSTEP_ELEMENT_FN std::uint32_t as_bits(float f) { return __builtin_bit_cast(std::uint32_t, f); }

LOCKSTEP_ELEMENT_FN float load(float x) { return x; }
LOCKSTEP_ELEMENT_FN double load(double x) { return x; }
LOCKSTEP_ELEMENT_FN float load(BFloat16Bits x) { return as_float(std::uint32_t{x.bits} << 16); }
LOCKSTEP_ELEMENT_FN float load(HalfBits x) {
  const std::uint32_t h = x.bits;
  const std::uint32_t shifted = (h & 0x7fffu) << 13;
  const std::uint32_t exponent = shifted & (0x7c00u << 13);
  const std::uint32_t normal = shifted + ((127u - 15u) << 23);
  // A subnormal half is an exact f32 difference.
  const std::uint32_t subnormal = as_bits(as_float(normal + (1u << 23)) - as_float(113u << 23));
  const std::uint32_t magnitude = exponent == (0x7c00u << 13) ? normal + ((128u - 16u) << 23)
                                  : exponent == 0u            ? subnormal
                                                              : normal;
  return as_float(magnitude | (h & 0x8000u) << 16);
}

// To nearest, ties to even; NaN stays NaN.
LOCKSTEP_ELEMENT_FN void store(float* to, float v) { *to = v; }
LOCKSTEP_ELEMENT_FN void store(double* to, double v) { *to = v; }
LOCKSTEP_ELEMENT_FN void store(BFloat16Bits* to, float v) {
  const std::uint32_t u = as_bits(v);
  const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (u >> 16) | 0x40u;
  to->bits = static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}
LOCKSTEP_ELEMENT_FN void store(HalfBits* to, float v) {
  const std::uint32_t all = as_bits(v);
  const std::uint32_t u = all & 0x7fffffffu;
  const std::uint32_t overflow = u > (255u << 23) ? 0x7e00u : 0x7c00u;
  const std::uint32_t subnormal = as_bits(as_float(u) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (u + 0xc8000fffu + ((u >> 13) & 1u)) >> 13;
  std::uint32_t h = u < (113u << 23) ? subnormal : normal;
  h = u >= (143u << 23) ? overflow : h;
  to->bits = static_cast<std::uint16_t>(h | (all >> 31) << 15);
}

template <class T>
struct Wide {
  using Type = float;
};
template <>
struct Wide<double> {
  using Type = double;
};

// Calls f.run<T, A>() with the storage type and the type it is computed in.
template <class F>
LOCKSTEP_ELEMENT_FN void with_element(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kF64:
      return f.template run<double, double>();
    case DType::kBF16:
      return f.template run<BFloat16Bits, float>();
    case DType::kF16:
      return f.template run<HalfBits, float>();
    default:
      return f.template run<float, float>();
  }
}

LOCKSTEP_ELEMENT_FN std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
LOCKSTEP_ELEMENT_FN std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

}  // namespace lockstep::kernels::LOCKSTEP_ISA
