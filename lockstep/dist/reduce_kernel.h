// The body of reduce_tree, compiled once per instruction set: reduce_{baseline,avx2,avx512}.cpp
// include it. Everything has internal linkage and calls no library code, so that no function
// compiled for wide vectors can be picked by the linker for another file.
#pragma once

#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "lockstep/dist/reduce.h"

namespace lockstep::dist::detail {
namespace {

// Elements per block: the accumulators of all tree levels stay in the first-level cache.
constexpr std::int64_t kBlock = 512;
// Open subtrees while leaves are taken in order: one per binary digit of the number of inputs.
constexpr int kMaxLevels = 17;

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

template <class T>
struct UnsignedOf {
  using Type = T;
};
template <>
struct UnsignedOf<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct UnsignedOf<std::int64_t> {
  using Type = std::uint64_t;
};

// Signed sums and products wrap: they are carried out unsigned. A NaN on either side stays.
template <ReduceOp kOp, class T>
struct Combine {
  static T apply(T a, T b) {
    using U = typename UnsignedOf<T>::Type;
    if constexpr (kOp == ReduceOp::kSum)
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    else if constexpr (kOp == ReduceOp::kProduct)
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    else if constexpr (kOp == ReduceOp::kMin)
      return (a < b || a != a) ? a : b;
    else
      return (a > b || a != a) ? a : b;
  }
};

template <ReduceOp kOp, class Acc>
void merge(Acc* __restrict into, const Acc* __restrict from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) into[i] = Combine<kOp, Acc>::apply(into[i], from[i]);
}

// Two inputs of a type that needs no widening, one or two outputs: one pass, no scratch.
template <ReduceOp kOp, class T>
void reduce_two(const void* a, const void* b, void* const* outputs, int m, std::int64_t count) {
  using U = typename Unaligned<T>::Type;
  const U* x = static_cast<const U*>(a);
  const U* y = static_cast<const U*>(b);
  if (m == 1) {
    U* out = static_cast<U*>(outputs[0]);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) out[i] = Combine<kOp, T>::apply(x[i], y[i]);
  } else {
    U* out0 = static_cast<U*>(outputs[0]);
    U* out1 = static_cast<U*>(outputs[1]);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const T v = Combine<kOp, T>::apply(x[i], y[i]);
      out0[i] = v;
      out1[i] = v;
    }
  }
}

template <ReduceOp kOp, class T>
void reduce_many(const void* const* inputs, int n, void* const* outputs, int m,
                 std::int64_t count) {
  using Acc = typename Element<T>::Acc;
  alignas(64) Acc partial[kMaxLevels + 1][kBlock];
  alignas(64) unsigned char result[kBlock * sizeof(T)];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t len = count - begin < kBlock ? count - begin : kBlock;
    const std::size_t offset = static_cast<std::size_t>(begin) * sizeof(T);
    int open = 0;
    for (int k = 0; k < n; ++k) {
      widen<T>(partial[open++], static_cast<const char*>(inputs[k]) + offset, len);
      // Leaf k closes as many subtrees as its number ends in one-bits.
      for (int bits = k; bits & 1; bits >>= 1, --open)
        merge<kOp>(partial[open - 2], partial[open - 1], len);
    }
    for (; open > 1; --open) merge<kOp>(partial[open - 2], partial[open - 1], len);
    if (m == 1) {
      narrow<T>(static_cast<char*>(outputs[0]) + offset, partial[0], len);
      continue;
    }
    narrow<T>(result, partial[0], len);
    for (int j = 0; j < m; ++j)
      __builtin_memcpy(static_cast<char*>(outputs[j]) + offset, result,
                       static_cast<std::size_t>(len) * sizeof(T));
  }
}

template <ReduceOp kOp, class T>
void reduce_typed(const void* const* inputs, int n, void* const* outputs, int m,
                  std::int64_t count) {
  if constexpr (__is_same(typename Element<T>::Acc, T)) {
    if (n == 2 && m <= 2) {
      reduce_two<kOp, T>(inputs[0], inputs[1], outputs, m, count);
      return;
    }
  }
  reduce_many<kOp, T>(inputs, n, outputs, m, count);
}

template <ReduceOp kOp>
void reduce_op(DType dtype, const void* const* inputs, int n, void* const* outputs, int m,
               std::int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return reduce_typed<kOp, float>(inputs, n, outputs, m, count);
    case DType::kF64:
      return reduce_typed<kOp, double>(inputs, n, outputs, m, count);
    case DType::kF16:
      return reduce_typed<kOp, F16>(inputs, n, outputs, m, count);
    case DType::kBF16:
      return reduce_typed<kOp, BF16>(inputs, n, outputs, m, count);
    case DType::kI32:
      return reduce_typed<kOp, std::int32_t>(inputs, n, outputs, m, count);
    case DType::kI64:
      return reduce_typed<kOp, std::int64_t>(inputs, n, outputs, m, count);
    case DType::kU8:
      return reduce_typed<kOp, std::uint8_t>(inputs, n, outputs, m, count);
    case DType::kBool:
      // Of values 0 and 1 the largest is "or" and the smallest is "and".
      if constexpr (kOp == ReduceOp::kSum || kOp == ReduceOp::kMax)
        return reduce_typed<ReduceOp::kMax, std::uint8_t>(inputs, n, outputs, m, count);
      else
        return reduce_typed<ReduceOp::kMin, std::uint8_t>(inputs, n, outputs, m, count);
  }
}

void reduce_all(ReduceOp op, DType dtype, const void* const* inputs, int n, void* const* outputs,
                int m, std::int64_t count) {
  switch (op) {
    case ReduceOp::kSum:
      return reduce_op<ReduceOp::kSum>(dtype, inputs, n, outputs, m, count);
    case ReduceOp::kProduct:
      return reduce_op<ReduceOp::kProduct>(dtype, inputs, n, outputs, m, count);
    case ReduceOp::kMin:
      return reduce_op<ReduceOp::kMin>(dtype, inputs, n, outputs, m, count);
    case ReduceOp::kMax:
      return reduce_op<ReduceOp::kMax>(dtype, inputs, n, outputs, m, count);
  }
}

}  // namespace
}  // namespace lockstep::dist::detail
