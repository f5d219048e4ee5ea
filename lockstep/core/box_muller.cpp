#include "lockstep/core/box_muller.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace lockstep {
namespace {

constexpr int kLanes = 8;

// Cephes logf for x in [2^-24, 1], written without branches so that the lanes vectorise.
[[gnu::always_inline]] inline float log_lane(float x) {
  constexpr float kP[9] = {7.0376836292E-2F,  -1.1514610310E-1F, 1.1676998740E-1F,
                           -1.2420140846E-1F, 1.4249322787E-1F,  -1.6668057665E-1F,
                           2.0000714765E-1F,  -2.4999993993E-1F, 3.3333331174E-1F};
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float m = std::bit_cast<float>((bits & 0x807FFFFFU) | 0x3F000000U);  // in [0.5, 1)
  const float exponent = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 127) + 1.0F;
  const bool low = m < 0.707106781186547524F;
  const float e = exponent - (low ? 1.0F : 0.0F);
  const float f = (m - 1.0F) + (low ? m : 0.0F);
  const float z = f * f;
  float y = kP[0];
  for (int i = 1; i < 9; ++i) y = __builtin_fmaf(y, f, kP[i]);
  y = __builtin_fmaf(y * f, z, e * -2.12194440e-4F);
  y = __builtin_fmaf(-z, 0.5F, y);
  return __builtin_fmaf(e, 0.693359375F, f + y);
}

// Cephes sinf and cosf together, for x in [0, 2 pi].
[[gnu::always_inline]] inline void sin_cos_lane(float x, float& sine, float& cosine) {
  const std::int32_t octant = (static_cast<std::int32_t>(x * 1.27323954473516F) + 1) & ~1;
  const auto y = static_cast<float>(octant);
  const bool swapped = (octant & 2) != 0;
  const std::uint32_t sine_sign = static_cast<std::uint32_t>(octant & 4) << 29;
  const std::uint32_t cosine_sign = static_cast<std::uint32_t>(~(octant - 2) & 4) << 29;
  x = __builtin_fmaf(y, -0.78515625F, x);
  x = __builtin_fmaf(y, -2.4187564849853515625e-4F, x);
  x = __builtin_fmaf(y, -3.77489497744594108e-8F, x);
  const float z = x * x;
  float c = __builtin_fmaf(2.443315711809948E-005F, z, -1.388731625493765E-003F);
  c = __builtin_fmaf(c, z, 4.166664568298827E-002F);
  c = __builtin_fmaf(c * z, z, -(z * 0.5F)) + 1.0F;
  float s = __builtin_fmaf(-1.9515295891E-4F, z, 8.3321608736E-3F);
  s = __builtin_fmaf(s, z, -1.6666654611E-1F);
  s = __builtin_fmaf(s * z, x, x);
  const float first = swapped ? c : s, second = swapped ? s : c;
  sine = std::bit_cast<float>(std::bit_cast<std::uint32_t>(first) ^ sine_sign);
  cosine = std::bit_cast<float>(std::bit_cast<std::uint32_t>(second) ^ cosine_sign);
}

[[gnu::always_inline]] inline void box_muller_lanes(float* values, float mean, float std) {
  constexpr auto kTwoPi = static_cast<float>(2 * std::numbers::pi);
  for (int j = 0; j < kLanes; ++j) {
    const float radius = std::sqrt(-2.0F * log_lane(1.0F - values[j]));
    float sine, cosine;
    sin_cos_lane(kTwoPi * values[j + kLanes], sine, cosine);
    values[j] = __builtin_fmaf(radius * cosine, std, mean);
    values[j + kLanes] = __builtin_fmaf(radius * sine, std, mean);
  }
}

using Function = void (*)(float*, float, float);

void portable(float* values, float mean, float std) { box_muller_lanes(values, mean, std); }

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void avx2(float* values, float mean, float std) {
  box_muller_lanes(values, mean, std);
}

Function choose() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2 : portable;
}
#else
Function choose() { return portable; }
#endif

}  // namespace

void box_muller_16(float* values, float mean, float std) {
  static const Function function = choose();
  function(values, mean, std);
}

void box_muller_16(double* values, double mean, double std) {
  for (int j = 0; j < kLanes; ++j) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - values[j]));
    const double theta = 2 * std::numbers::pi * values[j + kLanes];
    values[j] = std::fma(radius * std::cos(theta), std, mean);
    values[j + kLanes] = std::fma(radius * std::sin(theta), std, mean);
  }
}

namespace internal {
void box_muller_16_portable(float* values, float mean, float std) { portable(values, mean, std); }
}  // namespace internal

}  // namespace lockstep
