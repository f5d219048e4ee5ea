// exp over lanes. Internal: not for embedders.
#pragma once

#include <cmath>

#include "lockstep/kernels/simd.h"

namespace lockstep::kernels {

// e^x, within 2 units in the last place; subnormal results included, exactly 0 for -inf and below
// -104, inf above 88.7; NaN stays NaN. Polynomial of Cephes' expf.
LOCKSTEP_SIMD_FN F32Lanes exp_lanes(F32Lanes x) {
  const F32Lanes low = F32Lanes{} - 104.0f, high = F32Lanes{} + 89.0f;
  const F32Lanes nan_kept = x;
  x = x < low ? low : x;
  x = x > high ? high : x;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const F32Lanes n = (x * 1.44269504088896341f + kRound) - kRound;
  F32Lanes r = x - n * 0.693359375f;
  r += n * 2.12194440e-4f;
  F32Lanes p = F32Lanes{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n in two factors, each a normal number even where the result is subnormal or inf.
  const F32Lanes finite_n = nan_kept == nan_kept ? n : F32Lanes{};
  const I32Lanes whole = __builtin_convertvector(finite_n, I32Lanes);
  const I32Lanes half = whole >> 1;
  const I32Lanes a = (half + 127) << 23, b = (whole - half + 127) << 23;
  return p * lanes_cast<F32Lanes>(a) * lanes_cast<F32Lanes>(b);
}

LOCKSTEP_SIMD_FN F64Lanes exp_lanes(F64Lanes x) {
  for (int i = 0; i < 8; ++i) x[i] = std::exp(x[i]);
  return x;
}

}  // namespace lockstep::kernels
