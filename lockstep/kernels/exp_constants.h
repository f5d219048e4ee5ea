// The numbers of exp on f32, for scalars (scalar_math.h) and lanes (simd_math.h): Cephes' expf.
// Internal: not for embedders.
#pragma once

namespace lockstep::kernels::exp_constants {

inline constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
inline constexpr float kLog2E = 1.44269504088896341f;
// ln 2 in two parts, the first exact in products with small integers.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;
// e^r on [-ln 2 / 2, ln 2 / 2]: the polynomial above 1 + r, highest power first.
inline constexpr float kP0 = 1.9875691500e-4f;
inline constexpr float kP1 = 1.3981999507e-3f;
inline constexpr float kP2 = 8.3334519073e-3f;
inline constexpr float kP3 = 4.1665795894e-2f;
inline constexpr float kP4 = 1.6666665459e-1f;
inline constexpr float kP5 = 5.0000001201e-1f;

}  // namespace lockstep::kernels::exp_constants
