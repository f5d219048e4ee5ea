// Every detector of bad memory accesses finds a planted fault, and leaves the right kernel alone.
#include "vgpu/device_buffer.cuh"
#include "vgpu/runtime/settings.h"

namespace vgpu_tests {
namespace {

class MemoryFaults : public VirtualGpu {};

__global__ void fill_kernel(float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = 1.0f;
}
__global__ void copy_kernel(const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i];
}

TEST_F(MemoryFaults, OneElementBeyondTheEnd) {
  Buffer<float> x(100);
  EXPECT_CUDA(launch(nullptr, 1, 128, 0, fill_kernel, x.data(), 100));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(launch(nullptr, 1, 128, 0, fill_kernel, x.data(), 101));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "out-of-bounds access: ")) << text;
  EXPECT_TRUE(holds(text, "fill_kernel")) << text;
  EXPECT_TRUE(holds(text, "thread (100, 0, 0)")) << text;
  EXPECT_TRUE(holds(text, "write of 4 bytes at 0 bytes after the end of allocation")) << text;
}

TEST_F(MemoryFaults, BeforeTheBeginning) {
  Buffer<float> x(100);
  EXPECT_CUDA(launch(nullptr, 1, 1, 0, fill_kernel, x.data() - 1, 1));
  EXPECT_TRUE(holds(fault(), "out-of-bounds access"));
}

TEST_F(MemoryFaults, AFaultEndsTheUseOfTheDevice) {
  Buffer<float> x(4);
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, fill_kernel, x.data(), 8));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(launch(nullptr, 1, 4, 0, fill_kernel, x.data(), 4), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);  // it stays
}

TEST_F(MemoryFaults, MemoryOfTheHost) {
  std::vector<float> host(8);
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, fill_kernel, host.data(), 8));
  EXPECT_TRUE(holds(fault(), "that no device can reach"));
  vgpu::forget_faults();
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, fill_kernel, static_cast<float*>(nullptr), 8));
  EXPECT_TRUE(holds(fault(), "that no device can reach"));

  vgpu::forget_faults();
  float* pinned = nullptr;
  EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned), 32));
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, fill_kernel, pinned, 8));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(pinned[7], 1.0f);
  EXPECT_CUDA(cudaFreeHost(pinned));
}

TEST_F(MemoryFaults, UseAfterFree) {
  float* x = nullptr;
  EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&x), 400));
  EXPECT_CUDA(cudaFree(x));
  EXPECT_CUDA(launch(nullptr, 1, 4, 0, fill_kernel, x, 4));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "use after free: ")) << text;
  EXPECT_TRUE(holds(text, " of allocation ")) << text;
}

__global__ void wide_kernel(const float* x, float4* y) {
  y[threadIdx.x] = reinterpret_cast<const float4*>(x)[threadIdx.x];
}

TEST_F(MemoryFaults, Misaligned) {
  Buffer<float> x(std::vector<float>(16, 2.0f));
  Buffer<float4> y(3);
  EXPECT_CUDA(launch(nullptr, 1, 3, 0, wide_kernel, static_cast<const float*>(x.data()), y.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(
      launch(nullptr, 1, 3, 0, wide_kernel, static_cast<const float*>(x.data() + 1), y.data()));
  EXPECT_EQ(cudaPeekAtLastError(), cudaDeviceSynchronize());
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "misaligned access: ")) << text;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
}

TEST_F(MemoryFaults, NeverWritten) {
  Buffer<float> x(8), y(8);
  EXPECT_CUDA(launch(nullptr, 1, 4, 0, fill_kernel, x.data(), 4));
  EXPECT_CUDA(
      launch(nullptr, 1, 4, 0, copy_kernel, static_cast<const float*>(x.data()), y.data(), 4));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(
      launch(nullptr, 1, 8, 0, copy_kernel, static_cast<const float*>(x.data()), y.data(), 5));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "read of uninitialized memory: ")) << text;
  EXPECT_TRUE(holds(text, "byte 16 of allocation")) << text;
}

// A copy of bytes that nobody wrote does not make them written.
TEST_F(MemoryFaults, NeverWrittenIsCopiedAlong) {
  Buffer<float> x(8), y(8), z(8);
  EXPECT_CUDA(cudaMemcpy(y.data(), x.data(), 32, cudaMemcpyDeviceToDevice));
  EXPECT_CUDA(
      launch(nullptr, 1, 8, 0, copy_kernel, static_cast<const float*>(y.data()), z.data(), 8));
  EXPECT_TRUE(holds(fault(), "read of uninitialized memory"));
  vgpu::forget_faults();
  EXPECT_CUDA(cudaMemset(y.data(), 0, 32));
  EXPECT_CUDA(
      launch(nullptr, 1, 8, 0, copy_kernel, static_cast<const float*>(y.data()), z.data(), 8));
  EXPECT_EQ(fault(), "");
}

__global__ void shared_kernel(float* y, int written) {
  __shared__ float tile[64];
  const int i = static_cast<int>(threadIdx.x);
  if (i < written) tile[i] = 1.0f;
  __syncthreads();
  y[i] = tile[i];
}

TEST_F(MemoryFaults, SharedMemoryBeginsUninitializedInEveryBlock) {
  Buffer<float> y(64);
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, shared_kernel, y.data(), 64));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(launch(nullptr, 1, 64, 0, shared_kernel, y.data(), 63));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "read of uninitialized memory: ")) << text;
  EXPECT_TRUE(holds(text, "static shared memory")) << text;
  EXPECT_TRUE(holds(text, "thread (63, 0, 0)")) << text;
}

__global__ void other_stack_kernel(float** where, float* y) {
  float mine = 3.0f;
  if (threadIdx.x == 0) *where = &mine;
  __syncthreads();
  if (threadIdx.x == 1) *y = **where;
  __syncthreads();
}

TEST_F(MemoryFaults, LocalMemoryOfAnotherThread) {
  Buffer<float*> where(1);
  Buffer<float> y(1);
  EXPECT_CUDA(launch(nullptr, 1, 2, 0, other_stack_kernel, where.data(), y.data()));
  EXPECT_TRUE(holds(fault(), "of another thread"));
}

__constant__ float kTable[4] = {1, 2, 3, 4};
__global__ void constant_kernel(float* y) { y[threadIdx.x] = kTable[threadIdx.x]; }

TEST_F(MemoryFaults, ConstantsMayBeRead) {
  Buffer<float> y(4);
  EXPECT_CUDA(launch(nullptr, 1, 4, 0, constant_kernel, y.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(y.host()[3], 4.0f);
}

__global__ void trap_kernel() {
  if (threadIdx.x == 5) __trap();
}

TEST_F(MemoryFaults, Trap) {
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, trap_kernel));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), "thread (5, 0, 0)"));
}

TEST_F(MemoryFaults, ChecksCanBeSwitchedOff) {
  Buffer<float> x(8), y(8);
  const vgpu::Settings before = vgpu::settings();
  vgpu::settings().checks &= ~(1u << static_cast<int>(vgpu::FaultKind::kUninitialized));
  EXPECT_CUDA(
      launch(nullptr, 1, 8, 0, copy_kernel, static_cast<const float*>(x.data()), y.data(), 8));
  EXPECT_EQ(fault(), "");
  vgpu::settings() = before;
}

TEST_F(MemoryFaults, OutOfMemoryIsNoFault) {
  void* x = nullptr;
  EXPECT_EQ(cudaMalloc(&x, std::size_t{1} << 33), cudaErrorMemoryAllocation);
  EXPECT_EQ(x, nullptr);
  std::size_t free = 0, total = 0;
  EXPECT_CUDA(cudaMemGetInfo(&free, &total));
  EXPECT_CUDA(cudaMalloc(&x, total / 2));
  std::size_t left = 0;
  EXPECT_CUDA(cudaMemGetInfo(&left, &total));
  EXPECT_EQ(left, free - total / 2);
  EXPECT_CUDA(cudaFree(x));
}

TEST_F(MemoryFaults, CopiesOfTheHostAreChecked) {
  Buffer<float> x(8);
  std::vector<float> host(16);
  EXPECT_EQ(cudaMemcpy(x.data(), host.data(), 36, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.data(), host.data(), 32, cudaMemcpyDeviceToHost),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_CUDA(cudaMemcpy(x.data(), host.data(), 32, cudaMemcpyDefault));
  cudaPointerAttributes attributes;
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, x.data() + 3));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, host.data()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  cudaGetLastError();
}

}  // namespace
}  // namespace vgpu_tests
