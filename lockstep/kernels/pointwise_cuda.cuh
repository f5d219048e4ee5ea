// The kernels of element-wise ops, for *_cuda.cu files, which instantiate them per functor:
//
//   LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Exp)
//
// Internal: device code.
#pragma once

#include "lockstep/core/device_guard.h"
#include "lockstep/core/kernel_launch.cuh"
#include "lockstep/kernels/device_element.cuh"
#include "lockstep/kernels/pointwise_cuda.h"
#include "lockstep/kernels/pointwise_math.h"

namespace lockstep::kernels::cuda {

// What a kernel of compute type C needs of the numbers.
template <class C>
struct PointwiseNumbers {
  C value[kMaxPointwiseInputs];
};

template <class C, Arity arity, class Op>
__device__ __forceinline__ auto apply_op(const Op& op, const C* x) {
  if constexpr (arity == Arity::kUnary)
    return op(x[0]);
  else if constexpr (arity == Arity::kBinary)
    return op(x[0], x[1]);
  else
    return op(x[0], x[1], x[2]);
}

template <class T>
struct PackedPointers {
  const T* in[kMaxPointwiseInputs];
};

// All tensors in one order without gaps: 16 bytes of each input per thread; the last thread takes
// the elements that are left over.
template <class C, class T, class R, Arity arity, class Op>
__global__ void pointwise_packed_kernel(Op op, R* out, PackedPointers<T> from,
                                        PointwiseNumbers<C> numbers, std::uint64_t n) {
  constexpr int kN = kVectorElements<T>, kInputs = static_cast<int>(arity);
  const std::uint64_t vectors = n / kN;
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  const std::uint64_t first = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::uint64_t v = first; v < vectors; v += step) {
    AlignedVector<T, kN> in[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k)
      if (from.in[k]) in[k] = load_vector<kN>(from.in[k] + v * kN);
    AlignedVector<R, kN> result;
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      C x[kInputs];
#pragma unroll
      for (int k = 0; k < kInputs; ++k)
        x[k] = from.in[k] ? convert_element<C>(in[k].value[i]) : numbers.value[k];
      result.value[i] = convert_element<R>(apply_op<C, arity>(op, x));
    }
    store_vector(out + v * kN, result);
  }
  const std::uint64_t i = vectors * kN + first;
  if (i < n) {
    C x[kInputs];
    for (int k = 0; k < kInputs; ++k)
      x[k] = from.in[k] ? convert_element<C>(from.in[k][i]) : numbers.value[k];
    out[i] = convert_element<R>(apply_op<C, arity>(op, x));
  }
}

// Rows of whole vectors (PointwiseJob::vector_rows): 16 bytes of the output per thread.
template <class C, class T, Arity arity, class Op>
__global__ void pointwise_rows_kernel(Op op, PointwiseJob job, PointwiseNumbers<C> numbers) {
  constexpr unsigned kN = kVectorElements<T>, kInputs = static_cast<unsigned>(arity);
  const std::uint32_t vectors = static_cast<std::uint32_t>(job.n) / kN;
  const std::uint32_t v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= vectors) return;
  const std::uint32_t per_row = static_cast<std::uint32_t>(job.size[0]) / kN;
  std::uint32_t rest = v / per_row;
  const std::int64_t first = static_cast<std::int64_t>(v - rest * per_row) * kN;
  std::int64_t at[kInputs + 1];
#pragma unroll
  for (unsigned k = 0; k <= kInputs; ++k) at[k] = first * job.stride[0][k];
  for (int axis = 1; axis < job.rank; ++axis) {
    const std::uint32_t size = static_cast<std::uint32_t>(job.size[axis]);
    const std::uint32_t next = rest / size;
    const std::int64_t here = rest - next * size;
#pragma unroll
    for (unsigned k = 0; k <= kInputs; ++k) at[k] += here * job.stride[axis][k];
    rest = next;
  }
  C x[kN][kInputs];
#pragma unroll
  for (unsigned k = 0; k < kInputs; ++k) {
    const T* const in = static_cast<const T*>(job.in[k]);
    if (in != nullptr && job.stride[0][k + 1] == 1) {
      const AlignedVector<T, kN> part = load_vector<kN>(in + at[k + 1]);
#pragma unroll
      for (unsigned i = 0; i < kN; ++i) x[i][k] = convert_element<C>(part.value[i]);
    } else {
      const C one = in == nullptr ? numbers.value[k] : convert_element<C>(in[at[k + 1]]);
#pragma unroll
      for (unsigned i = 0; i < kN; ++i) x[i][k] = one;
    }
  }
  AlignedVector<T, kN> result;
#pragma unroll
  for (unsigned i = 0; i < kN; ++i)
    result.value[i] = convert_element<T>(apply_op<C, arity>(op, x[i]));
  store_vector(static_cast<T*>(job.out) + at[0], result);
}

// Any layouts and dtypes: an element per thread, in the order of the output.
template <class C, class Index, Arity arity, class Op>
__global__ void pointwise_strided_kernel(Op op, PointwiseJob job, PointwiseNumbers<C> numbers) {
  constexpr int kInputs = static_cast<int>(arity);
  const Index n = static_cast<Index>(job.n);
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    Index rest = i;
    std::int64_t at[kInputs + 1] = {};
    for (int axis = 0; axis < job.rank; ++axis) {
      const Index size = static_cast<Index>(job.size[axis]);
      const Index next = rest / size;
      const std::int64_t here = static_cast<std::int64_t>(rest - next * size);
#pragma unroll
      for (int k = 0; k <= kInputs; ++k) at[k] += here * job.stride[axis][k];
      rest = next;
    }
    C x[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k)
      x[k] = job.in[k] ? load_element<C>(job.in[k], at[k + 1], job.dtype[k + 1]) : numbers.value[k];
    store_element(job.out, at[0], job.dtype[0], apply_op<C, arity>(op, x));
  }
}

template <class C, class T, Arity arity, class Op>
void launch_packed(const PointwiseJob& job, const Op& op, const PointwiseNumbers<C>& numbers) {
  using Result = decltype(apply_op<C, arity>(op, numbers.value));
  using R = std::conditional_t<std::is_same_v<Result, bool>, bool, T>;
  PackedPointers<T> from;
  for (int k = 0; k < kMaxPointwiseInputs; ++k) from.in[k] = static_cast<const T*>(job.in[k]);
  const std::int64_t per_block = std::int64_t{lockstep::cuda::kBlockThreads} * kVectorElements<T>;
  lockstep::cuda::launch(job.name, job.stream, lockstep::cuda::grid_for(job.n, per_block),
                         lockstep::cuda::kBlockThreads, 0,
                         pointwise_packed_kernel<C, T, R, arity, Op>, op, static_cast<R*>(job.out),
                         from, numbers, static_cast<std::uint64_t>(job.n));
}

template <class C, class T, Arity arity, class Op>
void launch_rows(const PointwiseJob& job, const Op& op, const PointwiseNumbers<C>& numbers) {
  const std::int64_t per_block = std::int64_t{lockstep::cuda::kBlockThreads} * kVectorElements<T>;
  lockstep::cuda::launch(job.name, job.stream, lockstep::cuda::grid_for(job.n, per_block),
                         lockstep::cuda::kBlockThreads, 0, pointwise_rows_kernel<C, T, arity, Op>,
                         op, job, numbers);
}

template <class C, Arity arity, class Op>
void launch_pointwise(const PointwiseJob& job, const Op& op) {
  PointwiseNumbers<C> numbers;
  for (int k = 0; k < kMaxPointwiseInputs; ++k) {
    if constexpr (std::is_integral_v<C>)
      numbers.value[k] = job.integer[k];
    else
      numbers.value[k] = static_cast<C>(job.real[k]);
  }
  using Result = decltype(apply_op<C, arity>(op, numbers.value));
  const DType in = [&] {
    for (int k = 0; k < job.inputs; ++k)
      if (job.in[k]) return job.dtype[k + 1];
    return job.compute;
  }();
  const bool packed = job.packed && std::is_same_v<Result, bool> == (job.dtype[0] == kBool);
  if (packed) {
    if constexpr (std::is_same_v<C, float>) {
      if (in == kF32) return launch_packed<C, float, arity>(job, op, numbers);
      if (in == kF16) return launch_packed<C, F16Bits, arity>(job, op, numbers);
      if (in == kBF16) return launch_packed<C, BF16Bits, arity>(job, op, numbers);
    } else if constexpr (std::is_same_v<C, double>) {
      if (in == kF64) return launch_packed<C, double, arity>(job, op, numbers);
    } else {
      if (in == kI64) return launch_packed<C, std::int64_t, arity>(job, op, numbers);
    }
  }
  // Of one input only copies have such rows, and those have kernels of their own.
  if constexpr (arity != Arity::kUnary && std::is_same_v<C, float> && !std::is_same_v<Result, bool>)
    if (job.vector_rows) {
      if (job.dtype[0] == kF32) return launch_rows<C, float, arity>(job, op, numbers);
      if (job.dtype[0] == kF16) return launch_rows<C, F16Bits, arity>(job, op, numbers);
      if (job.dtype[0] == kBF16) return launch_rows<C, BF16Bits, arity>(job, op, numbers);
    }
  constexpr std::int64_t kMostBlocks = 1 << 16;
  const unsigned grid = lockstep::cuda::grid_for(job.n, lockstep::cuda::kBlockThreads, kMostBlocks);
  // Below 2^31 the step past the end still fits 32 bits.
  if (job.n < (std::int64_t{1} << 31))
    lockstep::cuda::launch(job.name, job.stream, grid, lockstep::cuda::kBlockThreads, 0,
                           pointwise_strided_kernel<C, std::uint32_t, arity, Op>, op, job, numbers);
  else
    lockstep::cuda::launch(job.name, job.stream, grid, lockstep::cuda::kBlockThreads, 0,
                           pointwise_strided_kernel<C, std::uint64_t, arity, Op>, op, job, numbers);
}

template <ResultKind kind, Arity arity, class Op>
void run_pointwise_kernel(const PointwiseJob& job, const Op& op) {
  const DeviceGuard guard(job.device);
  if (job.compute == kF32) return launch_pointwise<float, arity>(job, op);
  if (job.compute == kF64) return launch_pointwise<double, arity>(job, op);
  if constexpr (kind != ResultKind::kFloating) launch_pointwise<std::int64_t, arity>(job, op);
}

}  // namespace lockstep::kernels::cuda

#define LOCKSTEP_INSTANTIATE_POINTWISE(kind, arity, Op)                                            \
  template void lockstep::kernels::cuda::run_pointwise_kernel<lockstep::kernels::ResultKind::kind, \
                                                              lockstep::kernels::Arity::arity,     \
                                                              lockstep::kernels::pointwise::Op>(   \
      const PointwiseJob&, const lockstep::kernels::pointwise::Op&);
