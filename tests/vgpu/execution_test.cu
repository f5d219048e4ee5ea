// Blocks, warps, barriers, shared memory, atomics.
#undef NDEBUG  // assertions of kernels are tested
#include <cassert>
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
// Nobody waits for a lane that has ended, but it has nothing to give either.
__global__ void ended_lane_kernel(int* out, int source) {
  if (threadIdx.x == 3) return;
  __syncwarp();
  const unsigned votes = __ballot_sync(~0u, 1);
  out[threadIdx.x] = static_cast<int>(votes) + __shfl_sync(~0u, 1, source);
}
__global__ void foreign_mask_kernel(int* out) { out[threadIdx.x] = __shfl_sync(0xfffffffeu, 1, 1); }

TEST_F(Execution, WaitsThatNeverEndAreFaults) {
  Buffer<int> out(64);
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, ended_lane_kernel, out.data(), 0));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(out.host()[4], static_cast<int>(0xfffffff7u) + 1);
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, ended_lane_kernel, out.data(), 3));
  std::string text = fault();
  EXPECT_TRUE(holds(text, "a shuffle reads a lane that has ended")) << text;
  EXPECT_TRUE(holds(text, "ended_lane_kernel")) << text;

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

__global__ void two_barriers_kernel(int* out, bool divided) {
  if (divided && threadIdx.x % 2 == 0) {
    out[threadIdx.x] = 1;
    __syncthreads();
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();
  }
}

TEST_F(Execution, AllThreadsWaitAtTheSameBarrier) {
  Buffer<int> out(64);
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, two_barriers_kernel, out.data(), false));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, two_barriers_kernel, out.data(), true));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "barrier: ")) << text;
  EXPECT_TRUE(holds(text, "the __syncthreads of execution_test.cu:")) << text;
}

constexpr int kBound = 96;
__global__ void __launch_bounds__(kBound, 2) bounded_kernel(int* out) { out[threadIdx.x] = 1; }
template <class T, int kN>
__global__ void __launch_bounds__(kN) bounded_template_kernel(T* out) {
  out[threadIdx.y * blockDim.x + threadIdx.x] = 1;
}

TEST_F(Execution, LaunchBoundsAreKept) {
  Buffer<int> out(128);
  EXPECT_CUDA(launch(nullptr, 1, 96, 0, bounded_kernel, out.data()));
  EXPECT_EQ(launch(nullptr, 1, 97, 0, bounded_kernel, out.data()), cudaErrorInvalidConfiguration);
  EXPECT_CUDA(launch(nullptr, 1, {16, 4}, 0, bounded_template_kernel<int, 64>, out.data()));
  EXPECT_EQ(launch(nullptr, 1, {16, 5}, 0, bounded_template_kernel<int, 64>, out.data()),
            cudaErrorInvalidConfiguration);
  EXPECT_CUDA(launch(nullptr, 1, 128, 0, bounded_template_kernel<int, 128>, out.data()));
  EXPECT_EQ(fault(), "");
  cudaGetLastError();
}

__global__ void more_warp_kernel(unsigned* out) {
  int same = 0;
  const unsigned lane = threadIdx.x;
  const unsigned all = __match_all_sync(~0u, 5, &same), none = __match_all_sync(~0u, lane, &same);
  const unsigned values[] = {all,
                             none,
                             static_cast<unsigned>(same),
                             __reduce_and_sync(~0u, ~lane),
                             __reduce_or_sync(~0u, lane),
                             __reduce_xor_sync(~0u, lane * lane)};
  __nanosleep(100);
  for (unsigned i = 0; i < 6; ++i) out[lane * 6 + i] = values[i];
}

TEST_F(Execution, MoreWarpOperations) {
  Buffer<unsigned> out(32 * 6);
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, more_warp_kernel, out.data()));
  EXPECT_EQ(fault(), "");
  unsigned squares = 0;
  for (unsigned i = 0; i < 32; ++i) squares ^= i * i;
  const auto got = out.host();
  for (std::size_t t = 0; t < 32; ++t)
    EXPECT_EQ(std::vector<unsigned>(&got[t * 6], &got[t * 6] + 6),
              (std::vector<unsigned>{~0u, 0, 0, 0xffffffe0u, 31, squares}));
}

__global__ void scopes_kernel(unsigned* x) {
  atomicAdd_system(x, 1u);
  atomicMax_block(x + 1, threadIdx.x);
  atomicOr_system(x + 2, 1u << threadIdx.x);
  atomicCAS_system(x + 3, 0u, 7u);
}

TEST_F(Execution, AtomicsOfOtherScopes) {
  Buffer<unsigned> x(std::vector<unsigned>(4, 0));
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, scopes_kernel, x.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(x.host(), (std::vector<unsigned>{32, 31, ~0u, 7}));
}

__global__ void assert_kernel(int n) { assert(static_cast<int>(threadIdx.x) < n); }

TEST_F(Execution, AFalseAssertionEndsTheKernel) {
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, assert_kernel, 32));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, assert_kernel, 31));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorAssert);
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "assertion: ")) << text;
  EXPECT_TRUE(holds(text, "thread (31, 0, 0)")) << text;
  EXPECT_TRUE(holds(text, "static_cast<int>(threadIdx.x) < n")) << text;
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
