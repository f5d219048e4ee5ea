// Elements on their way into and out of reduce_kernel.h: every dtype's bits as the type that sums
// are computed in. As there, internal linkage and no library code, compiled per instruction set.
#pragma once

#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace lockstep::dist::detail {
namespace {

template <class T>
struct Unaligned {
  typedef T Type __attribute__((aligned(1), may_alias));
};

// Storage types: the bits of a half value.
struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};

float bits_to_float(std::uint32_t u) {
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}
std::uint32_t float_to_bits(float f) {
  std::uint32_t u;
  __builtin_memcpy(&u, &f, 4);
  return u;
}

// Fabian Giesen's conversions: exact up, round to nearest even down, subnormals kept.
float f16_to_float(std::uint16_t h) {
  std::uint32_t u = (h & 0x7fffu) << 13;
  const std::uint32_t exponent = u & (0x7c00u << 13);
  u += (127u - 15u) << 23;
  if (exponent == (0x7c00u << 13)) {
    u += (128u - 16u) << 23;
  } else if (exponent == 0) {
    u += 1u << 23;
    u = float_to_bits(bits_to_float(u) - bits_to_float(113u << 23));
  }
  return bits_to_float(u | ((h & 0x8000u) << 16));
}
std::uint16_t float_to_f16(float f) {
  std::uint32_t u = float_to_bits(f);
  const std::uint32_t sign = u & 0x80000000u;
  u ^= sign;
  std::uint32_t h;
  if (u >= (127u + 16u) << 23) {
    h = u > (255u << 23) ? 0x7e00u : 0x7c00u;
  } else if (u < (113u << 23)) {
    constexpr std::uint32_t kMagic = ((127u - 15u) + (23u - 10u) + 1u) << 23;
    h = float_to_bits(bits_to_float(u) + bits_to_float(kMagic)) - kMagic;
  } else {
    const std::uint32_t odd = (u >> 13) & 1u;
    u += ((15u - 127u) << 23) + 0xfffu + odd;
    h = u >> 13;
  }
  return static_cast<std::uint16_t>(h | (sign >> 16));
}

template <class T>
struct Element {
  using Acc = T;
};
template <>
struct Element<F16> {
  using Acc = float;
};
template <>
struct Element<BF16> {
  using Acc = float;
};

template <class T, class Acc = typename Element<T>::Acc>
void widen(Acc* out, const void* in, std::int64_t n) {
  if constexpr (__is_same(T, F16)) {
    const auto* p = static_cast<const Unaligned<std::uint16_t>::Type*>(in);
    std::int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(out + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p + i))));
#endif
    for (; i < n; ++i) out[i] = f16_to_float(p[i]);
  } else if constexpr (__is_same(T, BF16)) {
    const auto* p = static_cast<const Unaligned<std::uint16_t>::Type*>(in);
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = bits_to_float(static_cast<std::uint32_t>(p[i]) << 16);
  } else {
    const auto* p = static_cast<const typename Unaligned<Acc>::Type*>(in);
    for (std::int64_t i = 0; i < n; ++i) out[i] = p[i];
  }
}

template <class T, class Acc = typename Element<T>::Acc>
void narrow(void* out, const Acc* in, std::int64_t n) {
  if constexpr (__is_same(T, F16)) {
    auto* p = static_cast<Unaligned<std::uint16_t>::Type*>(out);
    std::int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i_u*>(p + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; ++i) p[i] = float_to_f16(in[i]);
  } else if constexpr (__is_same(T, BF16)) {
    auto* p = static_cast<Unaligned<std::uint16_t>::Type*>(out);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t u = float_to_bits(in[i]);
      const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
      const std::uint32_t nan = ((u >> 16) & 0x8000u) | 0x7fc0u;
      p[i] = static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    }
  } else {
    __builtin_memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Acc));
  }
}

}  // namespace
}  // namespace lockstep::dist::detail
