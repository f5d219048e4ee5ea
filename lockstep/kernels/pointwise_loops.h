// Contiguous loops over a functor of pointwise_math.h, templates on the instruction set so that
// each copy has its own symbol. Internal. f32 loops live in *_simd.cpp files, which instantiate
// them:
//
//   template void unary_f32<Isa::LOCKSTEP_ISA, pointwise::Exp>(const LoopArguments&);
#pragma once

#include "lockstep/kernels/isa.h"
#include "lockstep/kernels/pointwise_math.h"

// The iterations of the next loop touch different elements (an output may be an input, exactly).
#if defined(__clang__)
#define LOCKSTEP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOCKSTEP_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace lockstep::kernels {

// out[i] = op(in[0][i], in[1][i], ...), all contiguous in the type that the op computes in. Bit k
// of `scalars` set: in[k] is one element for all i. A bool result is stored as bool.
struct LoopArguments {
  const void* op;  // the functor
  void* out;
  const void* const* in;
  unsigned scalars;
  std::int64_t n;
};
using PointwiseLoop = void (*)(const LoopArguments& args);

template <class Op, class T>
LOCKSTEP_POINTWISE void unary_loop_body(const LoopArguments& args) {
  const Op op = *static_cast<const Op*>(args.op);
  using R = decltype(op(T()));
  R* y = static_cast<R*>(args.out);
  const T* a = static_cast<const T*>(args.in[0]);
  const std::int64_t n = args.n;
  if (args.scalars) {
    const R value = op(*a);
    for (std::int64_t i = 0; i < n; ++i) y[i] = value;
    return;
  }
  LOCKSTEP_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = op(a[i]);
}

template <class Op, class T>
LOCKSTEP_POINTWISE void binary_loop_body(const LoopArguments& args) {
  const Op op = *static_cast<const Op*>(args.op);
  using R = decltype(op(T(), T()));
  R* y = static_cast<R*>(args.out);
  const T* a = static_cast<const T*>(args.in[0]);
  const T* b = static_cast<const T*>(args.in[1]);
  const std::int64_t n = args.n;
  switch (args.scalars) {
    case 0:
      LOCKSTEP_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) y[i] = op(a[i], b[i]);
      return;
    case 1: {
      const T s = *a;
      LOCKSTEP_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) y[i] = op(s, b[i]);
      return;
    }
    case 2: {
      const T s = *b;
      LOCKSTEP_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) y[i] = op(a[i], s);
      return;
    }
    default: {
      const R value = op(*a, *b);
      for (std::int64_t i = 0; i < n; ++i) y[i] = value;
    }
  }
}

template <class Op, class T>
LOCKSTEP_POINTWISE void ternary_loop_body(const LoopArguments& args) {
  const Op op = *static_cast<const Op*>(args.op);
  using R = decltype(op(T(), T(), T()));
  R* y = static_cast<R*>(args.out);
  const T* a = static_cast<const T*>(args.in[0]);
  const T* b = static_cast<const T*>(args.in[1]);
  const T* c = static_cast<const T*>(args.in[2]);
  const std::int64_t n = args.n;
  if (args.scalars == 0) {
    LOCKSTEP_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) y[i] = op(a[i], b[i], c[i]);
    return;
  }
  const std::int64_t sa = args.scalars & 1 ? 0 : 1, sb = args.scalars & 2 ? 0 : 1,
                     sc = args.scalars & 4 ? 0 : 1;
  LOCKSTEP_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = op(a[i * sa], b[i * sb], c[i * sc]);
}

// Declared here, defined by pointwise_f32.h in the *_simd.cpp files alone, so that no other file
// compiles a copy for its own instruction set.
template <Isa isa, class Op>
void unary_f32(const LoopArguments& args);
template <Isa isa, class Op>
void binary_f32(const LoopArguments& args);
template <Isa isa, class Op>
void ternary_f32(const LoopArguments& args);

}  // namespace lockstep::kernels
