// The engine under sum, max, norm: combines the elements of some axes. Internal.
//
// Order: the reduced elements, in the order of their strides (a channels-last and a contiguous
// tensor may differ), go in blocks: lanes within 1024 elements, then blocks as a balanced binary
// tree; over columns, 32 rows at a time, then the same tree. It depends on shape and strides alone,
// never on the number of threads, and makes the error of a long f32 sum grow with log(n). CUDA
// devices have another order, in reduction.cuh, just as fixed.
#pragma once

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/isa.h"
#include "lockstep/kernels/reduction_ops.h"

namespace lockstep::kernels {

// All for one compute type T (f32, f64 or i64).
struct ReductionLoops {
  // *result = map(x[0]) ⊕ … ⊕ map(x[n-1]), n ≥ 1.
  void (*run)(const void* x, std::int64_t n, void* result);
  // acc[i] = map(x[i]); acc[i] = acc[i] ⊕ map(x[i]); acc[i] = acc[i] ⊕ x[i].
  void (*start)(void* acc, const void* x, std::int64_t n);
  void (*accumulate)(void* acc, const void* x, std::int64_t n);
  void (*combine)(void* acc, const void* x, std::int64_t n);
  ReductionOp op;  // for CUDA devices, which have kernels of their own
};

// The axes as a set of bits; no axes mean all. Throws Error for an axis out of range or named
// twice.
unsigned axis_set(const Shape& axes, int rank, const char* op);
// The shape without the axes of the set, or with them of size 1.
Shape reduced_shape(const Shape& shape, unsigned axes, bool keepdim);
// Number of elements that go into one result.
std::int64_t reduced_count(const Shape& shape, unsigned axes);

// A new tensor of dtype `compute`, of the shape reduced_shape(x.shape(), axes, true). Requires
// reduced_count > 0 unless the result is empty.
Tensor reduce(const Tensor& x, unsigned axes, DType compute, const ReductionLoops& loops);
// reduce(), then divided by `divisor` (floating `compute` only, unless it is 1) and rounded to
// `result`: one kernel on CUDA devices.
Tensor reduce_to(const Tensor& x, unsigned axes, DType compute, const ReductionLoops& loops,
                 DType result, double divisor = 1);

// Drops the size-1 axes of the set (a view).
Tensor drop_axes(const Tensor& x, unsigned axes);

// Loops of one functor: reduction_math.h has the functors, reduction_simd.cpp the f32 copies.
template <Isa isa, class Op>
ReductionLoops reduction_loops_f32();
template <class Op>
ReductionLoops reduction_loops(DType compute);

}  // namespace lockstep::kernels
