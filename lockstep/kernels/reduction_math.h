// The CPU's loops of a reduction over contiguous memory. Internal.
#pragma once

#include "lockstep/kernels/pointwise_loops.h"
#include "lockstep/kernels/reduction.h"
#include "lockstep/kernels/reduction_ops.h"

namespace lockstep::kernels {

// Two vectors of 64 bytes: the same lanes with every instruction set.
template <class Op, class T>
LOCKSTEP_POINTWISE void reduce_run_body(const void* x, std::int64_t n, void* result) {
  using V __attribute__((vector_size(64))) = T;
  constexpr std::int64_t kLanes = 64 / sizeof(T);
  const T* p = static_cast<const T*>(x);
  if (n < 2 * kLanes) {
    T total = Op::map(p[0]);
    for (std::int64_t i = 1; i < n; ++i) total = Op::combine(total, Op::map(p[i]));
    *static_cast<T*>(result) = total;
    return;
  }
  V a, b;
  __builtin_memcpy(&a, p, sizeof(V));
  __builtin_memcpy(&b, p + kLanes, sizeof(V));
  a = Op::map(a);
  b = Op::map(b);
  std::int64_t i = 2 * kLanes;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    V c, d;
    __builtin_memcpy(&c, p + i, sizeof(V));
    __builtin_memcpy(&d, p + i + kLanes, sizeof(V));
    a = Op::combine(a, Op::map(c));
    b = Op::combine(b, Op::map(d));
  }
  a = Op::combine(a, b);
  T lanes[kLanes];
  __builtin_memcpy(lanes, &a, sizeof(V));
  for (std::int64_t k = 0; i < n; ++i, k = (k + 1) % kLanes)
    lanes[k] = Op::combine(lanes[k], Op::map(p[i]));
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::int64_t k = 0; k < half; ++k) lanes[k] = Op::combine(lanes[k], lanes[k + half]);
  *static_cast<T*>(result) = lanes[0];
}

template <class Op, class T>
LOCKSTEP_POINTWISE void start_body(void* acc, const void* x, std::int64_t n) {
  T* a = static_cast<T*>(acc);
  const T* p = static_cast<const T*>(x);
  LOCKSTEP_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) a[i] = Op::map(p[i]);
}
template <class Op, class T>
LOCKSTEP_POINTWISE void accumulate_body(void* acc, const void* x, std::int64_t n) {
  T* a = static_cast<T*>(acc);
  const T* p = static_cast<const T*>(x);
  LOCKSTEP_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) a[i] = Op::combine(a[i], Op::map(p[i]));
}
template <class Op, class T>
LOCKSTEP_POINTWISE void combine_body(void* acc, const void* x, std::int64_t n) {
  T* a = static_cast<T*>(acc);
  const T* p = static_cast<const T*>(x);
  LOCKSTEP_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) a[i] = Op::combine(a[i], p[i]);
}

// For f64 and i64, compiled with the file that asks for them.
template <class Op, class T>
ReductionLoops wide_reduction_loops() {
  return {
      [](const void* x, std::int64_t n, void* r) { reduce_run_body<Op, T>(x, n, r); },
      [](void* acc, const void* x, std::int64_t n) { start_body<Op, T>(acc, x, n); },
      [](void* acc, const void* x, std::int64_t n) { accumulate_body<Op, T>(acc, x, n); },
      [](void* acc, const void* x, std::int64_t n) { combine_body<Op, T>(acc, x, n); },
      Op::kOp,
  };
}

template <class Op>
ReductionLoops reduction_loops(DType compute) {
  if (compute == kF64) return wide_reduction_loops<Op, double>();
  if (compute == kI64) return wide_reduction_loops<Op, std::int64_t>();
#if defined(__x86_64__)
  if (best_isa() == Isa::kAvx512) return reduction_loops_f32<Isa::kAvx512, Op>();
  if (best_isa() == Isa::kAvx2) return reduction_loops_f32<Isa::kAvx2, Op>();
#endif
  return reduction_loops_f32<Isa::kBaseline, Op>();
}

}  // namespace lockstep::kernels
