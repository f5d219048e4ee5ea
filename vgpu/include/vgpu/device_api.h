// What kernels call: barriers, atomics, fences; the warp's own is in warp_api.h.
#pragma once

#include <cstdint>
#include <type_traits>

#include "vgpu/bits.h"
#include "vgpu/thread.h"
#include "vgpu/warp_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
// The bound is noted beside the function: as many bytes before it, and a record in a section of
// theirs (vgpu/launch.h). A sum of sizes, as the attribute takes no other constant expression.
#define VGPU_FIRST(n, ...) sizeof(char[n])
#define __launch_bounds__(...) \
  __attribute__((patchable_function_entry(VGPU_FIRST(__VA_ARGS__, 0), VGPU_FIRST(__VA_ARGS__, 0))))
#define __constant__
// One block runs at a time on a thread of the runtime, so that a variable of that thread is shared
// by the block's threads, and by them alone.
#define __shared__ static thread_local

using VgpuSite = std::source_location;
inline void __syncthreads(const VgpuSite& site = VgpuSite::current()) {
  vgpu::block_barrier(vgpu::BlockVote::kNone, 0, site);
}
inline int __syncthreads_count(int predicate, const VgpuSite& site = VgpuSite::current()) {
  return vgpu::block_barrier(vgpu::BlockVote::kCount, predicate, site);
}
inline int __syncthreads_and(int predicate, const VgpuSite& site = VgpuSite::current()) {
  return vgpu::block_barrier(vgpu::BlockVote::kAnd, predicate, site);
}
inline int __syncthreads_or(int predicate, const VgpuSite& site = VgpuSite::current()) {
  return vgpu::block_barrier(vgpu::BlockVote::kOr, predicate, site);
}

inline void __nanosleep(unsigned) { vgpu::nanosleep(); }

inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
[[noreturn]] inline void __trap() { vgpu::trap("__trap"); }

// Atomics. Those on floats and minima are loops of compare-and-swap, as in hardware without them.
namespace vgpu {

template <class T, class F>
T atomic_update(T* address, F next) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  auto* bits = reinterpret_cast<Bits*>(address);
  Bits old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  while (true) {
    const auto wanted = static_cast<Bits>(to_bits(next(from_bits<T>(old))));
    if (__atomic_compare_exchange_n(bits, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return from_bits<T>(old);
  }
}

}  // namespace vgpu

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  if constexpr (std::is_integral_v<T>)
    return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
  else
    return vgpu::atomic_update(address, [&](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_sub(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return vgpu::atomic_update(address, [&](T old) { return old > value ? old : value; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return vgpu::atomic_update(address, [&](T old) { return old < value ? old : value; });
}
template <class T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_and(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_xor(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return vgpu::atomic_update(address, [&](T) { return value; });
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  T old = expected;
  __atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return old;
}
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return vgpu::atomic_update(address, [&](unsigned old) { return old >= limit ? 0u : old + 1; });
}
inline unsigned atomicDec(unsigned* address, unsigned limit) {
  return vgpu::atomic_update(
      address, [&](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}

// Of another scope than the device. What they order here is the same.
#define VGPU_SCOPES(name)                                      \
  template <class T>                                           \
  T name##_block(T* address, std::type_identity_t<T> value) {  \
    return name(address, value);                               \
  }                                                            \
  template <class T>                                           \
  T name##_system(T* address, std::type_identity_t<T> value) { \
    return name(address, value);                               \
  }
VGPU_SCOPES(atomicAdd)
VGPU_SCOPES(atomicSub)
VGPU_SCOPES(atomicMax)
VGPU_SCOPES(atomicMin)
VGPU_SCOPES(atomicAnd)
VGPU_SCOPES(atomicOr)
VGPU_SCOPES(atomicXor)
VGPU_SCOPES(atomicExch)
VGPU_SCOPES(atomicInc)
VGPU_SCOPES(atomicDec)
#undef VGPU_SCOPES
template <class T>
T atomicCAS_block(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return atomicCAS(address, expected, value);
}
template <class T>
T atomicCAS_system(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return atomicCAS(address, expected, value);
}

// Loads and stores with a wish for the caches: here plain ones.
template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T __ldcs(const T* p) {
  return *p;
}
template <class T>
T __ldcg(const T* p) {
  return *p;
}
template <class T>
void __stcs(T* p, T value) {
  *p = value;
}
template <class T>
void __stcg(T* p, T value) {
  *p = value;
}
