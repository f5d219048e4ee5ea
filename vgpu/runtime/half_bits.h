// 16-bit floats as bits, for the stand-ins of libraries: widening is exact, narrowing rounds to the
// nearest, ties to even.
#pragma once

#include <cstdint>
#include <cstring>

namespace vgpu {

struct Half {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

inline float widen(Half x) {
  _Float16 value;
  std::memcpy(&value, &x, sizeof(value));
  return static_cast<float>(value);
}
inline float widen(Bfloat16 x) {
  const std::uint32_t bits = std::uint32_t{x.bits} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
template <class T>
T widen(T x) {
  return x;
}

template <class T>
struct Narrow {
  template <class A>
  static T from(A x) {
    return static_cast<T>(x);
  }
};
template <>
struct Narrow<Half> {
  static Half from(float x) {
    const auto value = static_cast<_Float16>(x);
    Half half;
    std::memcpy(&half, &value, sizeof(half));
    return half;
  }
};
template <>
struct Narrow<Bfloat16> {
  static Bfloat16 from(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    if ((bits & 0x7fffffffu) > 0x7f800000u)  // NaN stays one
      return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
    return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
  }
};

}  // namespace vgpu
