// Memory and events that two processes share.
#include "vgpu/device_buffer.cuh"
#include "vgpu/processes.h"

namespace vgpu_tests {
namespace {

__global__ void add_kernel(int* x, int value) { x[threadIdx.x] += value; }

TEST(RuntimeIpc, AProcessWritesIntoTheMemoryOfAnother) {
  in_two_processes(
      [](const Channel& other) {
        Buffer<int> x(std::vector<int>(32, 1));
        cudaIpcMemHandle_t handle;
        ASSERT_EQ(cudaIpcGetMemHandle(&handle, x.data()), cudaSuccess);
        other.send(handle);
        other.receive<int>();
        EXPECT_EQ(x.host(), std::vector<int>(32, 42));
        void* own = nullptr;
        EXPECT_EQ(cudaIpcOpenMemHandle(&own, handle, cudaIpcMemLazyEnablePeerAccess),
                  cudaErrorInvalidResourceHandle);
      },
      [](const Channel& other) {
        ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
        const auto handle = other.receive<cudaIpcMemHandle_t>();
        void *memory = nullptr, *again = nullptr;
        ASSERT_EQ(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess),
                  cudaSuccess);
        EXPECT_CUDA(cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess));
        EXPECT_EQ(again, memory);
        EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
        EXPECT_CUDA(launch(nullptr, 1, 32, 0, add_kernel, static_cast<int*>(memory), 41));
        EXPECT_CUDA(cudaDeviceSynchronize());
        EXPECT_CUDA(cudaIpcCloseMemHandle(again));
        EXPECT_CUDA(launch(nullptr, 1, 32, 0, add_kernel, static_cast<int*>(memory), 0));
        EXPECT_CUDA(cudaIpcCloseMemHandle(memory));
        EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaErrorInvalidValue);
        other.send(0);
      });
}

TEST(RuntimeIpc, AStreamWaitsForAnEventOfAnotherProcess) {
  in_two_processes(
      [](const Channel& other) {
        Buffer<int> x(std::vector<int>(32, 1));
        cudaEvent_t event = nullptr;
        EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
        ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming),
                  cudaSuccess);
        cudaIpcMemHandle_t memory;
        cudaIpcEventHandle_t handle;
        ASSERT_EQ(cudaIpcGetMemHandle(&memory, x.data()), cudaSuccess);
        ASSERT_EQ(cudaIpcGetEventHandle(&handle, event), cudaSuccess);
        // The stream is held until the other process has enqueued its wait.
        EXPECT_CUDA(cudaLaunchHostFunc(
            nullptr, [](void* channel) { static_cast<const Channel*>(channel)->receive<int>(); },
            const_cast<Channel*>(&other)));
        EXPECT_CUDA(launch(nullptr, 1, 32, 0, add_kernel, x.data(), 1));
        EXPECT_CUDA(cudaEventRecord(event));
        other.send(memory);
        other.send(handle);
        EXPECT_CUDA(cudaDeviceSynchronize());
        other.receive<int>();
        EXPECT_CUDA(cudaEventDestroy(event));
      },
      [](const Channel& other) {
        const auto memory = other.receive<cudaIpcMemHandle_t>();
        const auto handle = other.receive<cudaIpcEventHandle_t>();
        void* x = nullptr;
        cudaEvent_t event = nullptr;
        ASSERT_EQ(cudaIpcOpenMemHandle(&x, memory, cudaIpcMemLazyEnablePeerAccess), cudaSuccess);
        ASSERT_EQ(cudaIpcOpenEventHandle(&event, handle), cudaSuccess);
        EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
        cudaStream_t stream = nullptr;
        EXPECT_CUDA(cudaStreamCreate(&stream));
        std::vector<int> got(32);
        EXPECT_CUDA(cudaHostRegister(got.data(), 128, 0));
        EXPECT_CUDA(cudaStreamWaitEvent(stream, event));
        EXPECT_CUDA(cudaMemcpyAsync(got.data(), x, 128, cudaMemcpyDeviceToHost, stream));
        EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
        other.send(0);
        EXPECT_CUDA(cudaStreamSynchronize(stream));
        EXPECT_EQ(got, std::vector<int>(32, 2));
        EXPECT_CUDA(cudaEventQuery(event));
        other.send(0);
      });
}

}  // namespace
}  // namespace vgpu_tests
