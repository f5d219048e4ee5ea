// Blocks, warps, barriers, shared memory, atomics.
#include <numeric>

#include "vgpu/device_buffer.cuh"

namespace vgpu_tests {
namespace {

class Execution : public VirtualGpu {};

__global__ void add_kernel(const float* a, const float* b, float* c, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) c[i] = a[i] + b[i];
}

TEST_F(Execution, EveryThreadHasItsPlace) {
  std::vector<float> a(1000), b(1000);
  std::iota(a.begin(), a.end(), 0.0f);
  std::iota(b.begin(), b.end(), 5.0f);
  Buffer<float> x(a), y(b), z(1000);
  EXPECT_CUDA(launch(nullptr, 4, 256, 0, add_kernel, x.data(), y.data(), z.data(), 1000));
  EXPECT_EQ(fault(), "");
  const auto sums = z.host();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], 2.0f * i + 5.0f);
}

__global__ void place_kernel(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[i] = static_cast<int>(i);
}

TEST_F(Execution, ThreeDimensions) {
  Buffer<int> out(2 * 3 * 2 * 4 * 2 * 3);
  EXPECT_CUDA(launch(nullptr, {2, 3, 2}, {4, 2, 3}, 0, place_kernel, out.data()));
  EXPECT_EQ(fault(), "");
  const auto values = out.host();
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<int>(i));
}

// The classic sum of a block, in shared memory.
__global__ void block_sum_kernel(const int* x, int* sums) {
  __shared__ int partial[256];
  partial[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

TEST_F(Execution, BlocksSumInSharedMemory) {
  std::vector<int> values(1024);
  std::iota(values.begin(), values.end(), 1);
  Buffer<int> x(values), sums(4);
  EXPECT_CUDA(launch(nullptr, 4, 256, 0, block_sum_kernel, x.data(), sums.data()));
  EXPECT_EQ(fault(), "");
  const auto got = sums.host();
  for (int b = 0; b < 4; ++b)
    EXPECT_EQ(got[static_cast<std::size_t>(b)], 256 * (256 * b) + 256 * 257 / 2);
}

__global__ void reverse_kernel(int* x, int n) {
  int* tile = static_cast<int*>(vgpu::dynamic_shared_memory());
  const int i = static_cast<int>(threadIdx.x);
  tile[i] = x[i];
  __syncthreads();
  x[i] = tile[n - 1 - i];
}

TEST_F(Execution, DynamicSharedMemoryHasALimit) {
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 0);
  Buffer<int> x(values);
  EXPECT_CUDA(launch(nullptr, 1, 64, 256, reverse_kernel, x.data(), 64));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(x.host()[0], 63);
  EXPECT_EQ(launch(nullptr, 1, 64, 48 * 1024 + 1, reverse_kernel, x.data(), 64),
            cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFuncSetAttribute(reverse_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   100 * 1024));
  EXPECT_CUDA(
      cudaFuncSetAttribute(reverse_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  EXPECT_CUDA(launch(nullptr, 1, 64, 100 * 1024, reverse_kernel, x.data(), 64));
  EXPECT_EQ(
      cudaFuncSetAttribute(reverse_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024),
      cudaErrorInvalidValue);
  EXPECT_EQ(fault(), "");
}

__global__ void warp_kernel(int* out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int sum = lane;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  const int up = __shfl_up_sync(~0u, lane, 1), down = __shfl_down_sync(~0u, lane, 3, 8);
  const int first = __shfl_sync(~0u, lane, 1, 4);
  const unsigned even = __ballot_sync(~0u, lane % 2 == 0);
  const unsigned same = __match_any_sync(~0u, lane / 8);
  const int most = __reduce_max_sync(~0u, lane * 3 % 32);
  int* mine = out + threadIdx.x * 7;
  mine[0] = sum;
  mine[1] = up;
  mine[2] = down;
  mine[3] = first;
  mine[4] = static_cast<int>(even);
  mine[5] = static_cast<int>(same);
  mine[6] = most;
}

TEST_F(Execution, WarpOperations) {
  Buffer<int> out(64 * 7);
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, warp_kernel, out.data()));
  EXPECT_EQ(fault(), "");
  const auto got = out.host();
  for (int t = 0; t < 64; ++t) {
    const int lane = t % 32, *mine = &got[static_cast<std::size_t>(t * 7)];
    EXPECT_EQ(mine[0], 31 * 32 / 2);
    EXPECT_EQ(mine[1], lane == 0 ? 0 : lane - 1);
    EXPECT_EQ(mine[2], lane % 8 < 5 ? lane + 3 : lane);
    EXPECT_EQ(mine[3], lane / 4 * 4 + 1);
    EXPECT_EQ(mine[4], 0x55555555);
    EXPECT_EQ(static_cast<unsigned>(mine[5]), 0xffu << (lane / 8 * 8));
    EXPECT_EQ(mine[6], 31);
  }
}

__global__ void vote_kernel(int* out) {
  const int odd = threadIdx.x % 2;
  const int count = __syncthreads_count(odd), all = __syncthreads_and(odd),
            any = __syncthreads_or(odd);
  if (threadIdx.x == 0) out[0] = count * 100 + all * 10 + any;
}

TEST_F(Execution, BarriersThatCount) {
  Buffer<int> out(1);
  EXPECT_CUDA(launch(nullptr, 1, 50, 0, vote_kernel, out.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(out.host()[0], 2501);
}

__global__ void count_kernel(unsigned* counter, float* sum, int* most) {
  atomicAdd(counter, 1u);
  atomicAdd(sum, 0.5f);
  atomicMax(most, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

TEST_F(Execution, AtomicsLoseNothing) {
  Buffer<unsigned> counter(std::vector<unsigned>{0});
  Buffer<float> sum(std::vector<float>{0});
  Buffer<int> most(std::vector<int>{-1});
  EXPECT_CUDA(launch(nullptr, 8, 96, 0, count_kernel, counter.data(), sum.data(), most.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(counter.host()[0], 768u);
  EXPECT_EQ(sum.host()[0], 384.0f);
  EXPECT_EQ(most.host()[0], 767);
}

// Grids, one after the other, see each other's results; the last block sums up.
__global__ void last_block_kernel(const int* x, int* partial, unsigned* arrived, int* total) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  __threadfence();
  int sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
  *total = sum;
}

TEST_F(Execution, TheLastBlockMayReadWhatTheOthersWrote) {
  Buffer<int> x(std::vector<int>{1, 2, 3, 4, 5}), partial(5), total(1);
  Buffer<unsigned> arrived(std::vector<unsigned>{0});
  EXPECT_CUDA(launch(nullptr, 5, 32, 0, last_block_kernel, x.data(), partial.data(), arrived.data(),
                     total.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(total.host()[0], 15);
}

__global__ void diverged_kernel(int* out) {
  if (threadIdx.x != 40) out[threadIdx.x] = __shfl_sync(~0u, 1, 0);
  __syncthreads();
}
__global__ void waits_for_ended_lane_kernel(int* out) {
  if (threadIdx.x == 3) return;
  out[threadIdx.x] = __shfl_sync(~0u, 1, 0);
}
__global__ void foreign_mask_kernel(int* out) { out[threadIdx.x] = __shfl_sync(0xfffffffeu, 1, 1); }

TEST_F(Execution, WaitsThatNeverEndAreFaults) {
  Buffer<int> out(64);
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, waits_for_ended_lane_kernel, out.data()));
  std::string text = fault();
  EXPECT_TRUE(holds(text, "barrier: ")) << text;
  EXPECT_TRUE(holds(text, "waits_for_ended_lane_kernel")) << text;
  EXPECT_TRUE(holds(text, "waits at a shuffle for lane 3, which has ended")) << text;

  vgpu::forget_faults();
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, foreign_mask_kernel, out.data()));
  text = fault();
  EXPECT_TRUE(holds(text, "its own lane is not in the mask")) << text;

  vgpu::forget_faults();
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, diverged_kernel, out.data()));
  text = fault();
  EXPECT_TRUE(holds(text, "for ever while thread")) << text;
  EXPECT_TRUE(holds(text, "__syncthreads")) << text;
  EXPECT_TRUE(holds(text, "a shuffle")) << text;
}

TEST_F(Execution, WhatCannotBeLaunchedIsRefused) {
  Buffer<int> out(1);
  EXPECT_EQ(launch(nullptr, 1, 1025, 0, place_kernel, out.data()), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(nullptr, 0, 32, 0, place_kernel, out.data()), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace vgpu_tests
