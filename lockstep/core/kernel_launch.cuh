// How kernels are launched, on a real device and on the virtual one. Internal: device code.
//
//   launch("softmax", stream, blocks, threads, shared_bytes, softmax_kernel<T>, x, y, n);
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "lockstep/core/launch_cuda.h"

namespace lockstep::cuda {

inline constexpr unsigned kBlockThreads = 256;
inline constexpr unsigned kWarp = 32;

// The arguments are converted to the kernel's parameters and copied at the call. No launch for a
// grid of 0 blocks. Throws Error naming the kernel where CUDA refuses.
template <class... Parameters, class... Arguments>
void launch(const char* name, cudaStream_t stream, dim3 grid, dim3 block, std::size_t shared_bytes,
            void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  if (shared_bytes > kWithoutAsking)
    check_launch(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared_bytes)),
                 name);
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check_launch(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), name);
}

// Blocks of `per_block` items each for n items, at most `most`: for kernels that stride over the
// grid.
inline unsigned grid_for(std::int64_t n, std::int64_t per_block, std::int64_t most = 1 << 30) {
  const std::int64_t blocks = (n + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

#if defined(__CUDACC__)
// The block's dynamic shared memory, 16-byte aligned.
template <class T>
__device__ __forceinline__ T* dynamic_shared_memory() {
  extern __shared__ __align__(16) unsigned char lockstep_shared_bytes[];
  return reinterpret_cast<T*>(lockstep_shared_bytes);
}
#else
template <class T>
T* dynamic_shared_memory() {
  return static_cast<T*>(vgpu::dynamic_shared_memory());
}
#endif

}  // namespace lockstep::cuda
