// One element from one dtype to another, by the rules of convert.h, for both devices. The half
// types are their bits (half_bits.h). Internal.
#pragma once

#include <limits>
#include <type_traits>

#include "lockstep/kernels/half_bits.h"

namespace lockstep::kernels {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, F16Bits> || std::is_same_v<T, BF16Bits>;
template <class T>
inline constexpr bool kIsReal = kIsHalf<T> || std::is_floating_point_v<T>;

// The nearest f32 towards zero with the last bit set if anything was lost: rounding this to a
// narrower type is rounding the f64 itself.
LOCKSTEP_POINTWISE float round_to_odd(double x) {
  const float f = static_cast<float>(x);
  const bool exact = static_cast<double>(f) == x || !(x - x == 0);
  if (exact) return f;
  const double size = x < 0 ? -x : x;
  const float f_size = f < 0.f ? -f : f;
  const bool too_large = static_cast<double>(f_size) > size;  // so is inf
  const float towards_zero = too_large ? bits_float(float_bits(f) - 1) : f;
  return bits_float(float_bits(towards_zero) | 1);
}

template <class To>
LOCKSTEP_POINTWISE To narrow(float x) {
  if constexpr (std::is_same_v<To, F16Bits>)
    return narrow_f16(x);
  else
    return narrow_bf16(x);
}

template <class To>
LOCKSTEP_POINTWISE To saturate(double x) {
  constexpr To kMin = std::numeric_limits<To>::min(), kMax = std::numeric_limits<To>::max();
  constexpr double kLow = static_cast<double>(kMin);
  // One past the largest value: a power of two, so exact.
  constexpr double kEnd = 2.0 * static_cast<double>(kMax / 2 + 1);
  if (!(x == x)) return 0;
  if (x < kLow) return kMin;
  if (x >= kEnd) return kMax;
  return static_cast<To>(x);
}

template <class To, class From>
LOCKSTEP_POINTWISE To convert_element(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kIsHalf<From>) {
    return convert_element<To>(widen(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return !(x == From(0));
  } else if constexpr (kIsHalf<To>) {
    if constexpr (std::is_same_v<From, float>)
      return narrow<To>(x);
    else
      return narrow<To>(round_to_odd(static_cast<double>(x)));
  } else if constexpr (kIsReal<To>) {
    return static_cast<To>(x);
  } else if constexpr (kIsReal<From>) {
    return saturate<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace lockstep::kernels
