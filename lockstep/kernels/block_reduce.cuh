// Sums and maxima over a warp or a block, in one fixed order: the same bits each time. Internal:
// device code.
#pragma once

#include <cuda_runtime.h>

#include "lockstep/core/kernel_launch.cuh"

namespace lockstep::kernels::cuda {

struct SumOf {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct MaxOf {  // passes a NaN over
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

// Over `width` neighbouring lanes (a power of two); each of them gets the result. All 32 lanes of
// the warp must come.
template <int width = 32, class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, Op op) {
#pragma unroll
  for (int lanes = width / 2; lanes > 0; lanes /= 2)
    value = op(value, __shfl_xor_sync(0xffffffffu, value, lanes));
  return value;
}

// Over a block of blockDim.x threads, a multiple of 32 and at most 1024; each gets the result.
// `scratch`: shared memory for 32 values of T, free to be used again after the call. All threads
// must come.
template <class T, class Op>
__device__ __forceinline__ T block_reduce(T value, T neutral, T* scratch, Op op) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = warp_reduce(value, op);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = warp_reduce(lane < warps ? scratch[lane] : neutral, op);
  __syncthreads();
  return value;
}

}  // namespace lockstep::kernels::cuda
