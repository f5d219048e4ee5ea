// The engine under all element-wise ops: any mix of dtypes, layouts and broadcast shapes. Internal.
//
// An op is a functor of pointwise_math.h. It computes in f32 (also for the half types), f64 or i64;
// inputs of other dtypes and strides go through small buffers that stay in the first-level cache,
// and so do results. Each output element depends only on its own inputs, so results do not depend
// on threads or layout.
#pragma once

#include <span>

#include "lockstep/core/config.h"
#include "lockstep/kernels/operand.h"
#include "lockstep/kernels/pointwise_cuda.h"
#include "lockstep/kernels/pointwise_kind.h"
#include "lockstep/kernels/pointwise_loops.h"
#include "lockstep/kernels/promote.h"

namespace lockstep::kernels {

struct PointwiseCall {
  const char* name;
  const void* functor;
  PointwiseLoop loop;
  DType compute;    // f32, f64 or i64: what `loop` takes
  bool gives_bool;  // what it gives: bool, or the compute type
};

// out = functor(inputs) for out of the broadcast shape, in any layouts; an input that shares memory
// with out in another layout is copied first. Bumps out's version.
void run_pointwise(const PointwiseCall& call, const Tensor& out, std::span<const Operand> inputs);

// An output for these inputs: their broadcast shape, the layout of the first that has this shape
// and is dense.
Tensor make_output(const char* name, DType dtype, std::span<const Operand> inputs);

// The loop of one functor for a compute type. f32 loops are instantiated in *_simd.cpp.
template <Isa isa, class Op, Arity arity>
constexpr PointwiseLoop f32_loop_for() {
  if constexpr (arity == Arity::kUnary)
    return &unary_f32<isa, Op>;
  else if constexpr (arity == Arity::kBinary)
    return &binary_f32<isa, Op>;
  else
    return &ternary_f32<isa, Op>;
}

template <class Op, Arity arity>
PointwiseLoop f32_loop() {
#if defined(__x86_64__)
  const Isa isa = best_isa();
  if (isa == Isa::kAvx512) return f32_loop_for<Isa::kAvx512, Op, arity>();
  if (isa == Isa::kAvx2) return f32_loop_for<Isa::kAvx2, Op, arity>();
#endif
  return f32_loop_for<Isa::kBaseline, Op, arity>();
}

template <class Op, class T, Arity arity>
void wide_loop(const LoopArguments& args) {
  if constexpr (arity == Arity::kUnary)
    unary_loop_body<Op, T>(args);
  else if constexpr (arity == Arity::kBinary)
    binary_loop_body<Op, T>(args);
  else
    ternary_loop_body<Op, T>(args);
}

template <class Op, Arity arity, ResultKind kind>
PointwiseLoop pointwise_loop(DType compute) {
  if (compute == kF32) return f32_loop<Op, arity>();
  if (compute == kF64) return &wide_loop<Op, double, arity>;
  if constexpr (kind != ResultKind::kFloating)
    return &wide_loop<Op, std::int64_t, arity>;
  else
    return nullptr;
}

// Writes to `out`; `dtype` is what the inputs promote to.
template <ResultKind kind, Arity arity, class Op>
void run_op_into(const char* name, const Op& op, const Tensor& out, DType dtype,
                 std::span<const Operand> inputs) {
  const DType compute =
      compute_dtype(kind == ResultKind::kFloating ? floating_or_f32(dtype) : dtype);
  if constexpr (kHasCuda)
    if (out.device().is_cuda())
      return cuda::run_pointwise<kind, arity>(name, op, out, compute, inputs);
  run_pointwise(
      {name, &op, pointwise_loop<Op, arity, kind>(compute), compute, kind == ResultKind::kBool},
      out, inputs);
}

template <ResultKind kind, Arity arity, class Op>
Tensor run_op(const char* name, const Op& op, DType dtype, std::span<const Operand> inputs) {
  const DType result = kind == ResultKind::kBool       ? kBool
                       : kind == ResultKind::kFloating ? floating_or_f32(dtype)
                                                       : dtype;
  Tensor out = make_output(name, result, inputs);
  run_op_into<kind, arity>(name, op, out, dtype, inputs);
  return out;
}

template <ResultKind kind, class Op>
Tensor unary_op(const char* name, const Op& op, const Tensor& x) {
  const Operand in[] = {x};
  return run_op<kind, Arity::kUnary>(name, op, x.dtype(), in);
}

template <ResultKind kind, class Op>
Tensor binary_op(const char* name, const Op& op, const Operand& a, const Operand& b) {
  const Operand in[] = {a, b};
  return run_op<kind, Arity::kBinary>(name, op, result_dtype(a, b), in);
}

// Result in x's dtype; `a` and `b` are the tensors of a backward formula.
template <class Op>
Tensor backward_op(const char* name, const Op& op, const Tensor& a, const Tensor& b) {
  const Operand in[] = {a, b};
  return run_op<ResultKind::kFloating, Arity::kBinary>(name, op, promote(a.dtype(), b.dtype()), in);
}

}  // namespace lockstep::kernels
