// Fixed-width lanes for row loops, compiled once per instruction set and chosen at run time.
//
//   run_simd([&]() LOCKSTEP_SIMD { for (i…) store(y + i, load(x + i) * 2); });
//
// A vector is always 64 bytes (16 f32 or 8 f64), whatever the machine has, so that sums over lanes
// have one order everywhere. Internal: not for embedders.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lockstep/core/dtype.h"
#include "lockstep/core/half.h"
#include "lockstep/kernels/simd_half.h"
#include "lockstep/kernels/simd_lanes.h"

namespace lockstep::kernels {

template <class T>
LOCKSTEP_SIMD_FN Lanes<T> load(const T* from) {
  if constexpr (sizeof(T) == 2) {
    U16Lanes bits;
    std::memcpy(&bits, from, sizeof(bits));
    if constexpr (std::is_same_v<T, Half>) return half_to_f32(bits);
    return lanes_cast<F32Lanes>(__builtin_convertvector(bits, U32Lanes) << 16);
  } else {
    Lanes<T> v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }
}

template <class T>
LOCKSTEP_SIMD_FN void store(T* to, Lanes<T> v) {
  if constexpr (std::is_same_v<T, Half>) {
    const U16Lanes bits = f32_to_half(v);
    std::memcpy(static_cast<void*>(to), &bits, sizeof(bits));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    const U16Lanes bits = f32_to_bfloat16(v);
    std::memcpy(static_cast<void*>(to), &bits, sizeof(bits));
  } else {
    std::memcpy(to, &v, sizeof(v));
  }
}

// The first `count` lanes from memory, `fill` in the others.
template <class T>
LOCKSTEP_SIMD_FN Lanes<T> load_part(const T* from, std::int64_t count, Accumulator<T> fill) {
  Lanes<T> v = Lanes<T>{} + fill;
  for (std::int64_t i = 0; i < count; ++i) v[i] = static_cast<Accumulator<T>>(from[i]);
  return v;
}

template <class T>
LOCKSTEP_SIMD_FN void store_part(T* to, Lanes<T> v, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(v[i]);
}

// Calls body(i, k) for vectors of k elements from i: k = kLanes<T> but for the last. `body` should
// use load_at and store_at, which know the constant k at compile time.
template <class T, class Body>
LOCKSTEP_SIMD_FN void for_each_vector(std::int64_t n, const Body& body) {
  constexpr std::int64_t kStep = kLanes<T>;
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) body(i, kStep);
  if (i < n) body(i, n - i);
}

template <class T>
LOCKSTEP_SIMD_FN Lanes<T> load_at(const T* row, std::int64_t i, std::int64_t k,
                                  Accumulator<T> fill = 0) {
  return k == kLanes<T> ? load(row + i) : load_part(row + i, k, fill);
}
template <class T>
LOCKSTEP_SIMD_FN void store_at(T* row, std::int64_t i, std::int64_t k, Lanes<T> v) {
  if (k == kLanes<T>)
    store(row + i, v);
  else
    store_part(row + i, v, k);
}

// Lanes added as a balanced tree.
template <class V>
LOCKSTEP_SIMD_FN auto sum_lanes(V v) {
  constexpr int kCount = sizeof(V) / sizeof(v[0]);
  for (int half = kCount / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) v[i] += v[i + half];
  return v[0];
}

// Sum of term(i, k) over a row of n: lanes, summed per block of 64 vectors, blocks in order. Unused
// lanes of the last vector must be 0.
template <class T, class Term>
LOCKSTEP_SIMD_FN Accumulator<T> sum_row(std::int64_t n, const Term& term) {
  constexpr std::int64_t kStep = kLanes<T>, kBlock = 64 * kStep;
  Lanes<T> total{};
  for (std::int64_t block = 0; block < n; block += kBlock) {
    const std::int64_t end = block + kBlock < n ? block + kBlock : n;
    Lanes<T> part{};
    std::int64_t i = block;
    for (; i + kStep <= end; i += kStep) part += term(i, kStep);
    if (i < end) part += term(i, end - i);
    total += part;
  }
  return sum_lanes(total);
}

template <class Body>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512"))) void
run_avx512(const Body& body) {
  body();
}
template <class Body>
__attribute__((target("avx2,fma"))) void run_avx2(const Body& body) {
  body();
}

// Runs the body (a lambda marked LOCKSTEP_SIMD) with the widest instruction set of this machine.
template <class Body>
void run_simd(const Body& body) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    run_avx512(body);
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    run_avx2(body);
  else
    body();
}

}  // namespace lockstep::kernels
