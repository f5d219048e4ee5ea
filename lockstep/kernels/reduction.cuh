// The kernels of reduction_cuda.h. Internal: device code.
#pragma once

#include <limits>
#include <type_traits>

#include "lockstep/kernels/device_element.cuh"
#include "lockstep/kernels/reduction_cuda.h"
#include "lockstep/kernels/row_parts.cuh"
#include "lockstep/kernels/strided_offset.cuh"

namespace lockstep::kernels::cuda {

inline constexpr unsigned kReductionThreads = 256;

// Stands for an element type that is known only at run time.
struct AnyElement {};

template <class Op, class C>
__device__ __forceinline__ C neutral_of() {
  using Limits = std::numeric_limits<C>;
  constexpr bool kFloating = std::is_floating_point_v<C>;
  if constexpr (std::is_base_of_v<reduction::Min, Op>)
    return kFloating ? Limits::infinity() : Limits::max();
  else if constexpr (std::is_base_of_v<reduction::Max, Op>)
    return kFloating ? -Limits::infinity() : Limits::lowest();
  else
    return C(0);
}

template <class Op>
struct CombineOf {
  template <class C>
  __device__ __forceinline__ C operator()(C a, C b) const {
    return Op::combine(a, b);
  }
};

template <class T, int kN, class C>
struct ElementsAt {
  AlignedVector<T, kN> raw;
  __device__ __forceinline__ ElementsAt(const ReductionJob& job, std::int64_t at)
      : raw(load_vector<kN>(static_cast<const T*>(job.in) + at)) {}
  __device__ __forceinline__ C operator[](int i) const { return convert_element<C>(raw.value[i]); }
};
template <class C>
struct ElementsAt<AnyElement, 1, C> {
  C value;
  __device__ __forceinline__ ElementsAt(const ReductionJob& job, std::int64_t at)
      : value(load_element<C>(job.in, at, job.in_dtype)) {}
  __device__ __forceinline__ C operator[](int) const { return value; }
};

template <class C>
__device__ __forceinline__ void store_result(const ReductionJob& job, std::int64_t at, C value) {
  if constexpr (std::is_floating_point_v<C>)
    if (job.divisor != 1) value /= static_cast<C>(job.divisor);
  store_element<C>(job.out, at, job.out_dtype, value);
}

// acc[i] joined with the elements at offset(k) + i for k = begin, begin + step, … below end; four
// loads are under way at a time.
template <class Op, class T, int kN, class C, class Offset>
__device__ __forceinline__ void accumulate(const ReductionJob& job, std::uint64_t begin,
                                           std::uint64_t end, std::uint64_t step, C (&acc)[kN],
                                           Offset&& offset) {
  const auto join = [&](const ElementsAt<T, kN, C>& v) {
#pragma unroll
    for (int i = 0; i < kN; ++i) acc[i] = Op::combine(acc[i], Op::map(v[i]));
  };
  std::uint64_t k = begin;
  for (; k + 3 * step < end; k += 4 * step) {
    const ElementsAt<T, kN, C> a(job, offset(k)), b(job, offset(k + step)),
        c(job, offset(k + 2 * step)), d(job, offset(k + 3 * step));
    join(a);
    join(b);
    join(c);
    join(d);
  }
  for (; k < end; k += step) join(ElementsAt<T, kN, C>(job, offset(k)));
}

template <class T, int kN, class C, class Op>
__global__ void __launch_bounds__(kReductionThreads, 2) reduce_rows_kernel(ReductionJob job) {
  __shared__ C scratch[32];
  const unsigned lanes = job.lanes, lane = threadIdx.x % lanes, piece = blockIdx.y;
  const std::uint64_t result =
      std::uint64_t{blockIdx.x} * (kReductionThreads / lanes) + threadIdx.x / lanes;
  C acc[kN];
#pragma unroll
  for (C& a : acc) a = neutral_of<Op, C>();
  // Groups without a result come along: a warp's lanes exchange values together.
  if (result < job.results) {
    std::int64_t base = strided_offset(job.kept_size, job.kept_in, job.kept_rank, result);
    const std::uint64_t begin = piece * job.per_piece;
    std::uint64_t all = job.count / kN;
    if (job.reduced_rank == 1) {
      // The first elements up to a multiple of 16 bytes, and the last, are taken one by one.
      if constexpr (kN > 1) {
        const T* const first = static_cast<const T*>(job.in) + base;
        const auto past = reinterpret_cast<std::uintptr_t>(first) / sizeof(T) % kN;
        const std::uint64_t head = min(job.count, std::uint64_t{(kN - past) % kN});
        all = (job.count - head) / kN;
        const std::uint64_t tail = head + all * kN;
        if (piece == 0 && lane < head) acc[0] = Op::map(convert_element<C>(first[lane]));
        if (piece + 1 == job.pieces)
          for (std::uint64_t i = tail + lane; i < job.count; i += lanes)
            acc[1] = Op::combine(acc[1], Op::map(convert_element<C>(first[i])));
        // Few lanes: the head may be longer than they are many.
        if (piece == 0)
          for (std::uint64_t i = lanes + lane; i < head; i += lanes)
            acc[0] = Op::combine(acc[0], Op::map(convert_element<C>(first[i])));
        base += static_cast<std::int64_t>(head);
      }
      const std::int64_t stride = job.reduced_stride[0] * kN;
      accumulate<Op, T, kN>(
          job, begin + lane, min(all, begin + job.per_piece), lanes, acc,
          [&](std::uint64_t k) { return base + static_cast<std::int64_t>(k) * stride; });
    } else {
      accumulate<Op, T, kN>(
          job, begin + lane, min(all, begin + job.per_piece), lanes, acc, [&](std::uint64_t k) {
            return base +
                   strided_offset(job.reduced_size, job.reduced_stride, job.reduced_rank, k * kN);
          });
    }
  }
#pragma unroll
  for (int half = kN / 2; half > 0; half /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i) acc[i] = Op::combine(acc[i], acc[i + half]);
  const C value = lanes > 32 ? block_reduce(acc[0], neutral_of<Op, C>(), scratch, CombineOf<Op>())
                             : group_reduce(acc[0], lanes, CombineOf<Op>());
  if (lane != 0 || result >= job.results) return;
  if (job.pieces > 1)
    static_cast<C*>(job.out)[result * job.pieces + piece] = value;
  else
    store_result(job, strided_offset(job.kept_size, job.kept_out, job.kept_rank, result), value);
}

template <class T, int kN, class C, class Op>
__global__ void __launch_bounds__(kReductionThreads, 2) reduce_columns_kernel(ReductionJob job) {
  __shared__ AlignedVector<C, kN> shared[kReductionThreads];
  const unsigned lanes = job.lanes, rows = kReductionThreads / lanes, piece = blockIdx.y;
  const unsigned lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
  const std::uint64_t width = job.kept_size[0];
  const std::uint64_t chunks = (width + lanes * kN - 1) / (lanes * kN);
  const std::uint64_t outer = blockIdx.x / chunks;
  const std::uint64_t column = (blockIdx.x % chunks * lanes + lane) * kN;
  C acc[kN];
#pragma unroll
  for (C& a : acc) a = neutral_of<Op, C>();
  if (column < width) {
    const std::int64_t base =
        strided_offset(job.kept_size, job.kept_in, job.kept_rank, outer * width + column);
    const std::uint64_t begin = piece * job.per_piece;
    const std::uint64_t end = min(job.count, begin + job.per_piece);
    if (job.reduced_rank == 1) {
      const std::int64_t stride = job.reduced_stride[0];
      accumulate<Op, T, kN>(job, begin + row, end, rows, acc, [&](std::uint64_t k) {
        return base + static_cast<std::int64_t>(k) * stride;
      });
    } else {
      accumulate<Op, T, kN>(job, begin + row, end, rows, acc, [&](std::uint64_t k) {
        return base + strided_offset(job.reduced_size, job.reduced_stride, job.reduced_rank, k);
      });
    }
  }
#pragma unroll
  for (int i = 0; i < kN; ++i) shared[threadIdx.x].value[i] = acc[i];
  for (unsigned half = rows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < half) {
#pragma unroll
      for (int i = 0; i < kN; ++i)
        shared[threadIdx.x].value[i] =
            Op::combine(shared[threadIdx.x].value[i], shared[threadIdx.x + half * lanes].value[i]);
    }
  }
  if (row != 0 || column >= width) return;
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    const std::uint64_t result = outer * width + column + static_cast<unsigned>(i);
    const C value = shared[threadIdx.x].value[i];
    if (job.pieces > 1)
      static_cast<C*>(job.out)[piece * job.results + result] = value;
    else
      store_result(job, strided_offset(job.kept_size, job.kept_out, job.kept_rank, result), value);
  }
}

template <class T, int kN, class C, class Op>
void launch_reduction(const ReductionJob& job, CUstream_st* stream) {
  std::uint64_t blocks;
  if (job.columns) {
    const std::uint64_t width = job.kept_size[0], chunk = job.lanes * kN;
    blocks = job.results / width * ((width + chunk - 1) / chunk);
  } else {
    const std::uint64_t groups = kReductionThreads / job.lanes;
    blocks = (job.results + groups - 1) / groups;
  }
  lockstep::cuda::launch(
      "reduction", stream, dim3(static_cast<unsigned>(blocks), job.pieces), kReductionThreads, 0,
      job.columns ? reduce_columns_kernel<T, kN, C, Op> : reduce_rows_kernel<T, kN, C, Op>, job);
}

template <class T, class C, class Op>
void launch_vectors(const ReductionJob& job, CUstream_st* stream) {
  launch_reduction<T, kVectorElements<T>, C, Op>(job, stream);
}

template <class C, class Op>
void launch_for_dtype(const ReductionJob& job, CUstream_st* stream) {
  // Elements that are reduced in their own compute type, and squares of all that are summed in f64.
  if (job.vectors) {
    if constexpr (std::is_same_v<C, std::int64_t>)
      return launch_vectors<std::int64_t, C, Op>(job, stream);
    if constexpr (std::is_same_v<C, double>)
      if (job.in_dtype == kF64) return launch_vectors<double, C, Op>(job, stream);
    if constexpr (std::is_same_v<C, float> ||
                  (std::is_same_v<C, double> && std::is_same_v<Op, reduction::SumSquares>)) {
      if (job.in_dtype == kF32) return launch_vectors<float, C, Op>(job, stream);
      if (job.in_dtype == kF16) return launch_vectors<F16Bits, C, Op>(job, stream);
      if (job.in_dtype == kBF16) return launch_vectors<BF16Bits, C, Op>(job, stream);
    }
  }
  launch_reduction<AnyElement, 1, C, Op>(job, stream);
}

template <class C>
void run_reduction(const ReductionJob& job, ReductionOp op, CUstream_st* stream) {
  switch (op) {
    case ReductionOp::kSum:
      return launch_for_dtype<C, reduction::Sum>(job, stream);
    case ReductionOp::kSumSquares:
      return launch_for_dtype<C, reduction::SumSquares>(job, stream);
    case ReductionOp::kSumAbs:
      return launch_for_dtype<C, reduction::SumAbs>(job, stream);
    case ReductionOp::kMax:
      return launch_for_dtype<C, reduction::Max>(job, stream);
    case ReductionOp::kMin:
      return launch_for_dtype<C, reduction::Min>(job, stream);
    case ReductionOp::kMaxAbs:
      return launch_for_dtype<C, reduction::MaxAbs>(job, stream);
  }
}

}  // namespace lockstep::kernels::cuda
