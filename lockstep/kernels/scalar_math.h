// exp, log, tanh, erf on one f32, without branches or library calls, so that loops over them become
// vector code; the same text serves device code. Errors, measured over all of f32 against f64 (in
// units of the last place, without contraction to fma): exp 1.5, log 1.5, tanh 2, erf 2.
// The f64 overloads are the C library's. Polynomials: Cephes (exp, log, tanh), N. Juffa (erf).
#pragma once

#include <math.h>

#include <cstdint>

#include "lockstep/kernels/exp_constants.h"

// Always inlined: the same functions are compiled for several instruction sets in one program, and
// an out-of-line copy could be picked by the linker for the wrong one.
#if defined(__CUDACC__)
#define LOCKSTEP_POINTWISE __host__ __device__ __forceinline__
#else
#define LOCKSTEP_POINTWISE inline __attribute__((always_inline))
#endif

namespace lockstep::kernels {

LOCKSTEP_POINTWISE std::int32_t float_bits(float x) { return __builtin_bit_cast(std::int32_t, x); }
LOCKSTEP_POINTWISE float bits_float(std::int32_t x) { return __builtin_bit_cast(float, x); }
LOCKSTEP_POINTWISE float copy_sign(float x, float sign) {
  return bits_float((float_bits(x) & 0x7fffffff) | (float_bits(sign) & ~0x7fffffff));
}

// inf above 88.73, denormals down to exp(-103.97), NaN for NaN.
LOCKSTEP_POINTWISE float exp_of(float x) {
  namespace k = exp_constants;
  float c = x > 89.f ? 89.f : x;
  c = c < -105.f ? -105.f : c;
  const float shifted = c * k::kLog2E + k::kRound;
  const float n = shifted - k::kRound;
  const std::int32_t i = float_bits(shifted) - float_bits(k::kRound);
  float r = c - n * k::kLn2High;
  r = r - n * k::kLn2Low;
  float p = k::kP0;
  p = p * r + k::kP1;
  p = p * r + k::kP2;
  p = p * r + k::kP3;
  p = p * r + k::kP4;
  p = p * r + k::kP5;
  p = p * (r * r) + r + 1.f;
  // In two factors: 2^n itself leaves f32 at both ends.
  const std::int32_t half = i >> 1;
  const float a = bits_float((half + 127) << 23), b = bits_float((i - half + 127) << 23);
  return x == x ? p * a * b : x;
}
LOCKSTEP_POINTWISE double exp_of(double x) { return ::exp(x); }

// -inf for 0, NaN below 0, inf for inf, NaN for NaN.
LOCKSTEP_POINTWISE float log_of(float x) {
  constexpr float kTiny = 1.17549435e-38f;
  const bool denormal = x < kTiny;
  const float scaled = denormal ? x * 8388608.f : x;
  const std::int32_t bits = float_bits(scaled);
  // m in [sqrt(1/2), sqrt(2)), scaled = m * 2^e.
  // Unsigned: the difference wraps for negative numbers, whose result is NaN below.
  const auto offset = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) - 0x3f3504f3u);
  const std::int32_t e_bits = offset & ~0x7fffff;
  const float m = bits_float(static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) -
                                                       static_cast<std::uint32_t>(e_bits)));
  const float e = static_cast<float>(e_bits >> 23) - (denormal ? 23.f : 0.f);
  const float r = m - 1.f, z = r * r;
  float p = 7.0376836292e-2f;
  p = p * r - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  float y = r * z * p;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  float result = r + y + e * 0.693359375f;
  result = x == 0.f ? -__builtin_inff() : result;
  result = x < 0.f ? __builtin_nanf("") : result;
  result = x == __builtin_inff() ? x : result;
  return x == x ? result : x;
}
LOCKSTEP_POINTWISE double log_of(double x) { return ::log(x); }

LOCKSTEP_POINTWISE float tanh_of(float x) {
  const float a = x < 0.f ? -x : x;
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = p * z * x + x;
  const float far = copy_sign(1.f - 2.f / (exp_of(a + a) + 1.f), x);
  const float y = a < 0.625f ? near : far;
  return x == x ? y : x;
}
LOCKSTEP_POINTWISE double tanh_of(double x) { return ::tanh(x); }

LOCKSTEP_POINTWISE float erf_of(float x) {
  const float t = x < 0.f ? -x : x;
  const float s = x * x;
  float far = -1.72853470e-5f * t + 3.83197126e-4f;
  const float u = -3.88396438e-3f * t + 2.42546219e-2f;
  far = far * s + u;
  far = far * t - 1.06777877e-1f;
  far = far * t - 6.34846687e-1f;
  far = far * t - 1.28717512e-1f;
  far = far * t - t;
  far = copy_sign(1.f - exp_of(far), x);
  far = t > 4.f ? copy_sign(1.f, x) : far;
  float near = -5.96761703e-4f;
  near = near * s + 4.99119423e-3f;
  near = near * s - 2.67681349e-2f;
  near = near * s + 1.12819925e-1f;
  near = near * s - 3.76125336e-1f;
  near = near * s + 1.28379166e-1f;
  near = near * x + x;
  const float y = t > 0.927734375f ? far : near;
  return x == x ? y : x;
}
LOCKSTEP_POINTWISE double erf_of(double x) { return ::erf(x); }

LOCKSTEP_POINTWISE float sqrt_of(float x) { return __builtin_sqrtf(x); }
LOCKSTEP_POINTWISE double sqrt_of(double x) { return __builtin_sqrt(x); }
// One value at a time through the C library.
LOCKSTEP_POINTWISE float sin_of(float x) { return ::sinf(x); }
LOCKSTEP_POINTWISE double sin_of(double x) { return ::sin(x); }
LOCKSTEP_POINTWISE float cos_of(float x) { return ::cosf(x); }
LOCKSTEP_POINTWISE double cos_of(double x) { return ::cos(x); }
LOCKSTEP_POINTWISE float log1p_of(float x) { return ::log1pf(x); }
LOCKSTEP_POINTWISE double log1p_of(double x) { return ::log1p(x); }
LOCKSTEP_POINTWISE float pow_of(float x, float y) { return ::powf(x, y); }
LOCKSTEP_POINTWISE double pow_of(double x, double y) { return ::pow(x, y); }

}  // namespace lockstep::kernels
