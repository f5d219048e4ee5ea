// exp over lanes. Internal: not for embedders.
#pragma once

#include <cmath>

#include "lockstep/kernels/exp_constants.h"
#include "lockstep/kernels/simd.h"

namespace lockstep::kernels {

// e^x, within 2 units in the last place; subnormal results included, exactly 0 for -inf and below
// -104, inf above 88.7; NaN stays NaN. Polynomial of Cephes' expf.
LOCKSTEP_SIMD_FN F32Lanes exp_lanes(F32Lanes x) {
  namespace k = exp_constants;
  const F32Lanes low = F32Lanes{} - 104.0f, high = F32Lanes{} + 89.0f;
  const F32Lanes nan_kept = x;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const F32Lanes n = (x * k::kLog2E + k::kRound) - k::kRound;
  F32Lanes r = x - n * k::kLn2High;
  r -= n * k::kLn2Low;
  F32Lanes p = F32Lanes{} + k::kP0;
  p = p * r + k::kP1;
  p = p * r + k::kP2;
  p = p * r + k::kP3;
  p = p * r + k::kP4;
  p = p * r + k::kP5;
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
