// Devices, memory, copies and errors of the virtual GPU.
#include <numeric>

#include "vgpu/counters.h"
#include "vgpu/device_buffer.cuh"
#include "vgpu/runtime/settings.h"

namespace vgpu_tests {
namespace {

class RuntimeMemory : public VirtualGpu {
 protected:
  void TearDown() override {
    cudaSetDevice(0);
    cudaGetLastError();
    VirtualGpu::TearDown();
  }
};

TEST_F(RuntimeMemory, DevicesAreThereAndOthersAreErrors) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, vgpu::settings().devices);
  EXPECT_EQ(cudaSetDevice(count), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_CUDA(cudaSetDevice(1));
  int device = -1;
  EXPECT_CUDA(cudaGetDevice(&device));
  EXPECT_EQ(device, 1);
  cudaDeviceProp first, second;
  EXPECT_CUDA(cudaGetDeviceProperties(&first, 0));
  EXPECT_CUDA(cudaGetDeviceProperties(&second, 1));
  EXPECT_NE(std::string(first.uuid.bytes), std::string(second.uuid.bytes));
  int warp = 0;
  EXPECT_CUDA(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 1));
  EXPECT_EQ(warp, 32);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

TEST_F(RuntimeMemory, TheLimitIsPerDeviceAndComesBackWithFree) {
  std::size_t free = 0, total = 0, left = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total, vgpu::settings().memory);
  void *most = nullptr, *more = nullptr;
  ASSERT_EQ(cudaMalloc(&most, free), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_CUDA(cudaMalloc(&more, 1));
  EXPECT_CUDA(cudaFree(more));
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_CUDA(cudaFree(most));
  EXPECT_CUDA(cudaMemGetInfo(&left, &total));
  EXPECT_EQ(left, free);
  EXPECT_EQ(cudaFree(most), cudaErrorInvalidValue);
}

TEST_F(RuntimeMemory, PointersSayWhatTheyAre) {
  cudaPointerAttributes a;
  int plain = 0;
  int *pinned = nullptr, *device = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
  EXPECT_CUDA(cudaSetDevice(1));
  ASSERT_EQ(cudaMalloc(&device, 64), cudaSuccess);
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_CUDA(cudaPointerGetAttributes(&a, &plain));
  EXPECT_EQ(a.type, cudaMemoryTypeUnregistered);
  EXPECT_CUDA(cudaPointerGetAttributes(&a, pinned + 3));
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  EXPECT_EQ(a.hostPointer, pinned + 3);
  EXPECT_CUDA(cudaPointerGetAttributes(&a, device + 3));
  EXPECT_EQ(a.type, cudaMemoryTypeDevice);
  EXPECT_EQ(a.device, 1);
  EXPECT_CUDA(cudaHostRegister(&plain, sizeof(plain), cudaHostRegisterDefault));
  EXPECT_EQ(cudaHostRegister(&plain, sizeof(plain), 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_CUDA(cudaPointerGetAttributes(&a, &plain));
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  EXPECT_CUDA(cudaHostUnregister(&plain));
  EXPECT_EQ(cudaHostUnregister(&plain), cudaErrorHostMemoryNotRegistered);
  EXPECT_CUDA(cudaFree(device));
  EXPECT_CUDA(cudaFreeHost(pinned));
}

TEST_F(RuntimeMemory, CopiesOfRectanglesLeaveTheRestAlone) {
  std::vector<int> host(6 * 8);
  std::iota(host.begin(), host.end(), 0);
  Buffer<int> device(host);
  std::vector<int> block(3 * 4, -1);
  // Rows 1 to 3, columns 2 to 5 of 6 x 8.
  EXPECT_CUDA(
      cudaMemcpy2D(block.data(), 16, device.data() + 8 + 2, 32, 16, 3, cudaMemcpyDeviceToHost));
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c)
      EXPECT_EQ(block[static_cast<std::size_t>(r * 4 + c)], (r + 1) * 8 + c + 2);
  EXPECT_CUDA(cudaMemset2D(device.data() + 8 + 2, 32, 0, 16, 3));
  const auto after = device.host();
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 8; ++c) {
      const bool inside = r >= 1 && r <= 3 && c >= 2 && c <= 5;
      EXPECT_EQ(after[static_cast<std::size_t>(r * 8 + c)], inside ? 0 : r * 8 + c);
    }
  EXPECT_EQ(cudaMemcpy2D(block.data(), 8, device.data(), 32, 16, 3, cudaMemcpyDeviceToHost),
            cudaErrorInvalidPitchValue);
}

TEST_F(RuntimeMemory, CopiesBeyondTheEndAndInTheWrongDirectionAreErrors) {
  Buffer<int> device(std::vector<int>(16, 1));
  std::vector<int> host(32);
  EXPECT_EQ(cudaMemcpy(host.data(), device.data(), 65, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), device.data(), 64, cudaMemcpyHostToDevice),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_CUDA(cudaMemcpy(host.data(), device.data(), 64, cudaMemcpyDefault));
  EXPECT_EQ(host[15], 1);
  EXPECT_EQ(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
}

TEST_F(RuntimeMemory, MemoryOfThePeerNeedsLeave) {
  int can = 0;
  EXPECT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  Buffer<int> here(std::vector<int>(8, 7));
  EXPECT_CUDA(cudaSetDevice(1));
  {
    Buffer<int> there(std::vector<int>(8, 1));
    EXPECT_CUDA(cudaMemcpyPeer(there.data(), 1, here.data(), 0, 32));
    EXPECT_EQ(there.host(), std::vector<int>(8, 7));
    EXPECT_EQ(cudaMemcpyPeer(there.data(), 0, here.data(), 0, 32), cudaErrorInvalidValue);
  }
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_CUDA(cudaDeviceDisablePeerAccess(0));
}

__global__ void double_kernel(int* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] *= 2;
}

TEST_F(RuntimeMemory, KernelsReachPeersOnlyWithLeave) {
  Buffer<int> here(std::vector<int>(8, 7));
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, double_kernel, here.data(), 8));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_TRUE(holds(vgpu::last_fault(1), "no peer")) << vgpu::last_fault(1);
  vgpu::forget_faults();
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, double_kernel, here.data(), 8));
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaDeviceDisablePeerAccess(0));
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(here.host(), std::vector<int>(8, 14));
}

TEST_F(RuntimeMemory, KernelsReachPinnedAndRegisteredMemory) {
  int* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 32), cudaSuccess);
  std::fill_n(pinned, 8, 3);
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, double_kernel, pinned, 8));
  std::vector<int> own(8, 5);
  EXPECT_CUDA(cudaHostRegister(own.data(), 32, cudaHostRegisterMapped));
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, double_kernel, own.data(), 8));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(pinned[7], 6);
  EXPECT_EQ(own, std::vector<int>(8, 10));
  EXPECT_CUDA(cudaHostUnregister(own.data()));
  EXPECT_CUDA(cudaFreeHost(pinned));
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, double_kernel, own.data(), 8));
  EXPECT_NE(fault(), "");
}

TEST_F(RuntimeMemory, AFaultSticksToItsDeviceOnly) {
  Buffer<int> x(std::vector<int>(4, 1));
  EXPECT_CUDA(launch(nullptr, 1, 8, 0, double_kernel, x.data(), 8));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(launch(nullptr, 1, 4, 0, double_kernel, x.data(), 4), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 4), cudaErrorIllegalAddress);
  EXPECT_TRUE(holds(vgpu::last_fault(0), "double_kernel")) << vgpu::last_fault(0);
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_CUDA(cudaMalloc(&more, 4));
  EXPECT_CUDA(cudaFree(more));
}

TEST_F(RuntimeMemory, CallsAreCounted) {
  const vgpu::Counters before = vgpu::counters();
  const auto names = vgpu::launches_by_name();
  {
    Buffer<int> x(std::vector<int>(4, 1));
    EXPECT_CUDA(launch(nullptr, 1, 4, 0, double_kernel, x.data(), 4));
    EXPECT_CUDA(cudaDeviceSynchronize());
  }
  const vgpu::Counters after = vgpu::counters();
  EXPECT_EQ(after.launches - before.launches, 1u);
  EXPECT_EQ(after.allocations - before.allocations, 1u);
  EXPECT_EQ(after.bytes_copied - before.bytes_copied, 16u);
  EXPECT_EQ(after.host_waits - before.host_waits, 3u);  // the copy, the wait, the free
  std::uint64_t mine = 0;
  for (const auto& [name, count] : vgpu::launches_by_name())
    if (holds(name, "double_kernel")) mine += count - (names.count(name) ? names.at(name) : 0);
  EXPECT_EQ(mine, 1u);
}

}  // namespace
}  // namespace vgpu_tests
