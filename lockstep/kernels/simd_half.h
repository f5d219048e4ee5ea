// The half types' bits to and from lanes of f32. Internal: not for embedders.
#pragma once

#include "lockstep/kernels/simd_lanes.h"

namespace lockstep::kernels {

LOCKSTEP_SIMD_FN F32Lanes half_to_f32(U16Lanes bits) {
  const U32Lanes h = __builtin_convertvector(bits, U32Lanes);
  U32Lanes o = (h & 0x7fffu) << 13;
  const U32Lanes exponent = o & (0x7c00u << 13);
  o += (127u - 15u) << 23;
  // Subnormal halves are exact f32 differences.
  const U32Lanes subnormal =
      lanes_cast<U32Lanes>(lanes_cast<F32Lanes>(o + (1u << 23)) - 6.103515625e-05f);
  o = exponent == (0x7c00u << 13) ? o + ((128u - 16u) << 23) : exponent == 0u ? subnormal : o;
  return lanes_cast<F32Lanes>(o | ((h & 0x8000u) << 16));
}

// To nearest, ties to even; NaN stays NaN.
LOCKSTEP_SIMD_FN U16Lanes f32_to_half(F32Lanes value) {
  U32Lanes u = lanes_cast<U32Lanes>(value);
  const U32Lanes sign = u & 0x80000000u;
  u ^= sign;
  const U32Lanes overflow = u > (255u << 23) ? U32Lanes{} + 0x7e00u : U32Lanes{} + 0x7c00u;
  const U32Lanes subnormal = lanes_cast<U32Lanes>(lanes_cast<F32Lanes>(u) + 0.5f) - 0x3f000000u;
  const U32Lanes normal = (u + (0xc8000000u + 0xfffu) + ((u >> 13) & 1u)) >> 13;
  U32Lanes o = u < (113u << 23) ? subnormal : normal;
  o = u >= (143u << 23) ? overflow : o;
  return __builtin_convertvector(o | (sign >> 16), U16Lanes);
}

LOCKSTEP_SIMD_FN U16Lanes f32_to_bfloat16(F32Lanes value) {
  const U32Lanes u = lanes_cast<U32Lanes>(value);
  const U32Lanes rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const U32Lanes nan = (u >> 16) | 0x40u;
  return __builtin_convertvector((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded, U16Lanes);
}

}  // namespace lockstep::kernels
