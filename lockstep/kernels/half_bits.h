// The half types as bits: conversions to and from f32 without branches, so that loops vectorise.
// To nearest, ties to even; overflow gives inf; NaN stays NaN (quiet). Internal.
#pragma once

#include "lockstep/kernels/scalar_math.h"

namespace lockstep::kernels {

// Stand for Half and BFloat16 where Eigen's inline functions may not be compiled (*_simd.cpp).
struct F16Bits {
  std::uint16_t bits;
};
struct BF16Bits {
  std::uint16_t bits;
};

LOCKSTEP_POINTWISE float widen(F16Bits h) {
  constexpr std::int32_t kExponent = 0x7c00 << 13;
  std::int32_t o = (h.bits & 0x7fff) << 13;
  const std::int32_t exponent = o & kExponent;
  o += (127 - 15) << 23;
  const std::int32_t special = o + ((128 - 16) << 23);
  const float subnormal = bits_float(o + (1 << 23)) - 6.103515625e-05f;
  o = exponent == kExponent ? special : o;
  o = exponent == 0 ? float_bits(subnormal) : o;
  return bits_float(o | ((h.bits & 0x8000) << 16));
}

LOCKSTEP_POINTWISE float widen(BF16Bits h) {
  return bits_float(static_cast<std::int32_t>(static_cast<std::uint32_t>(h.bits) << 16));
}

LOCKSTEP_POINTWISE F16Bits narrow_f16(float x) {
  const std::int32_t sign = float_bits(x) & ~0x7fffffff;
  const std::int32_t u = float_bits(x) & 0x7fffffff;
  // Adding 1/2 shifts the fraction of a subnormal half into place and rounds it.
  const std::int32_t subnormal = float_bits(bits_float(u) + 0.5f) - 0x3f000000;
  const std::int32_t normal = (u - (112 << 23) + 0xfff + ((u >> 13) & 1)) >> 13;
  std::int32_t o = u < (113 << 23) ? subnormal : normal;
  o = u >= (143 << 23) ? 0x7c00 : o;
  o = u > (255 << 23) ? 0x7e00 : o;
  return {static_cast<std::uint16_t>(o | ((sign >> 16) & 0x8000))};
}

LOCKSTEP_POINTWISE BF16Bits narrow_bf16(float x) {
  const auto u = static_cast<std::uint32_t>(float_bits(x));
  const std::uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  const std::uint32_t nan = (u >> 16) | 0x40;
  return {static_cast<std::uint16_t>((u & 0x7fffffff) > 0x7f800000u ? nan : rounded)};
}

}  // namespace lockstep::kernels
