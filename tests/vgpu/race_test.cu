// Missing barriers, races between blocks: found without luck, and not seen where there are none.
#include "vgpu/device_buffer.cuh"
#include "vgpu/runtime/settings.h"

namespace vgpu_tests {
namespace {

class Races : public VirtualGpu {};

// The sum of a block; `skip` leaves out one barrier: 1 the first, 2 that of the loop.
__global__ void sum_kernel(const int* x, int* sum, int skip) {
  __shared__ int partial[128];
  partial[threadIdx.x] = x[threadIdx.x];
  if (skip != 1) __syncthreads();
  for (unsigned half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    if (skip != 2) __syncthreads();
  }
  if (threadIdx.x == 0) *sum = partial[0];
}

TEST_F(Races, AMissingBarrierIsFoundWithEverySeed) {
  Buffer<int> x(std::vector<int>(128, 1)), sum(1);
  const vgpu::Settings before = vgpu::settings();
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    vgpu::settings().seed = seed;
    for (const int skip : {0, 1, 2}) {
      vgpu::forget_faults();
      EXPECT_CUDA(launch(nullptr, 1, 128, 0, sum_kernel, static_cast<const int*>(x.data()),
                         sum.data(), skip));
      const std::string text = fault();
      if (skip == 0) {
        EXPECT_EQ(text, "");
        EXPECT_EQ(sum.host()[0], 128);
      } else {
        EXPECT_TRUE(holds(text, "race within a block: ") ||
                    holds(text, "read of uninitialized memory: "))
            << text;
        EXPECT_TRUE(holds(text, "static shared memory")) << text;
      }
    }
  }
  vgpu::settings() = before;
}

// Within a warp __syncwarp is enough, and needed.
__global__ void warp_exchange_kernel(int* out, bool with_barrier) {
  __shared__ int tile[32];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncwarp();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

TEST_F(Races, SyncwarpOrdersTheLanesOfAWarp) {
  Buffer<int> out(32);
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, warp_exchange_kernel, out.data(), true));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(out.host()[0], 31);
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, warp_exchange_kernel, out.data(), false));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "race within a block") || holds(text, "uninitialized")) << text;
}

// A write after others have read, without a barrier: a race that no result shows in a fixed order.
__global__ void overwrite_kernel(int* out, bool with_barrier) {
  __shared__ int value;
  if (threadIdx.x == 0) value = 1;
  __syncthreads();
  const int seen = value;
  if (with_barrier) __syncthreads();
  if (threadIdx.x == 0) value = 2;
  out[threadIdx.x] = seen;
}

TEST_F(Races, WriteAfterRead) {
  Buffer<int> out(64);
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, overwrite_kernel, out.data(), true));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, overwrite_kernel, out.data(), false));
  EXPECT_TRUE(holds(fault(), "race within a block"));
}

__global__ void one_cell_kernel(int* cell, bool atomically) {
  if (threadIdx.x != 0) return;
  if (atomically)
    atomicAdd(cell, 1);
  else
    *cell = static_cast<int>(blockIdx.x);
}
__global__ void neighbour_kernel(const int* x, int* y) {
  y[blockIdx.x] = 1;
  if (blockIdx.x > 0) y[blockIdx.x] += y[blockIdx.x - 1];
  (void)x;
}

TEST_F(Races, BlocksOfOneLaunch) {
  Buffer<int> cell(std::vector<int>{0}), row(std::vector<int>(4, 0));
  EXPECT_CUDA(launch(nullptr, 4, 32, 0, one_cell_kernel, cell.data(), true));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(launch(nullptr, 4, 32, 0, one_cell_kernel, cell.data(), false));
  std::string text = fault();
  EXPECT_TRUE(holds(text, "race between blocks: ")) << text;
  EXPECT_TRUE(holds(text, "in the same launch")) << text;

  vgpu::forget_faults();
  EXPECT_CUDA(
      launch(nullptr, 4, 1, 0, neighbour_kernel, static_cast<const int*>(cell.data()), row.data()));
  text = fault();
  EXPECT_TRUE(holds(text, "race between blocks: ")) << text;
}

// Global memory as scratch between the threads of a block needs the barrier as well.
__global__ void scratch_kernel(int* scratch, int* out, bool with_barrier) {
  scratch[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncthreads();
  out[threadIdx.x] = scratch[(threadIdx.x + 32) % 64];
}

TEST_F(Races, GlobalMemoryWithinABlock) {
  Buffer<int> scratch(std::vector<int>(64, 0)), out(64);
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, scratch_kernel, scratch.data(), out.data(), true));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, scratch_kernel, scratch.data(), out.data(), false));
  EXPECT_TRUE(holds(fault(), "race within a block"));
}

}  // namespace
}  // namespace vgpu_tests
