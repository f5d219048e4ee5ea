// Streams, events, and what happens when an event is left out.
#include <atomic>
#include <thread>

#include "vgpu/counters.h"
#include "vgpu/device_buffer.cuh"
#include "vgpu/runtime/settings.h"

namespace vgpu_tests {
namespace {

class Streams : public VirtualGpu {
 protected:
  void SetUp() override {
    VirtualGpu::SetUp();
    for (cudaStream_t* s : {&first_, &second_})
      EXPECT_CUDA(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    EXPECT_CUDA(cudaEventCreate(&event_));
  }
  void TearDown() override {
    for (cudaStream_t s : {first_, second_}) EXPECT_CUDA(cudaStreamDestroy(s));
    EXPECT_CUDA(cudaEventDestroy(event_));
    VirtualGpu::TearDown();
  }
  cudaStream_t first_ = nullptr, second_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

__global__ void fill_kernel(int* x, int value) { x[threadIdx.x] = value; }
__global__ void increase_kernel(int* x) { x[threadIdx.x] += 1; }
__global__ void sum_kernel(const int* x, int* sum) {
  int s = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) s += x[i];
  sum[threadIdx.x] = s;
}

TEST_F(Streams, AStreamKeepsItsOrder) {
  Buffer<int> x(32);
  EXPECT_CUDA(launch(first_, 1, 32, 0, fill_kernel, x.data(), 5));
  for (int i = 0; i < 10; ++i) EXPECT_CUDA(launch(first_, 1, 32, 0, increase_kernel, x.data()));
  EXPECT_CUDA(cudaStreamSynchronize(first_));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(x.host()[31], 15);
}

TEST_F(Streams, AnEventOrdersTwoStreams) {
  Buffer<int> x(32), sum(32);
  EXPECT_CUDA(launch(first_, 1, 32, 0, fill_kernel, x.data(), 5));
  EXPECT_CUDA(cudaEventRecord(event_, first_));
  EXPECT_CUDA(cudaStreamWaitEvent(second_, event_));
  EXPECT_CUDA(launch(second_, 1, 32, 0, sum_kernel, static_cast<const int*>(x.data()), sum.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(sum.host()[0], 160);
}

// Whatever the streams' threads happen to do: nothing orders the two.
TEST_F(Streams, AMissingEventIsARace) {
  Buffer<int> x(32), sum(32);
  EXPECT_CUDA(launch(first_, 1, 32, 0, fill_kernel, x.data(), 5));
  EXPECT_CUDA(launch(second_, 1, 32, 0, sum_kernel, static_cast<const int*>(x.data()), sum.data()));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "race between operations: ") || holds(text, "uninitialized")) << text;
  if (holds(text, "race")) {
    EXPECT_TRUE(holds(text, "fill_kernel")) << text;
    EXPECT_TRUE(holds(text, "sum_kernel")) << text;
  }
}

TEST_F(Streams, ARaceIsFoundAlsoWhereTheOrderHappensToBeRight) {
  Buffer<int> x(std::vector<int>(32, 1));
  std::atomic<bool> over{false};
  EXPECT_CUDA(launch(first_, 1, 32, 0, increase_kernel, x.data()));
  EXPECT_CUDA(cudaLaunchHostFunc(
      first_, [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &over));
  // The host has it from elsewhere; what orders streams is a call of CUDA that waits or asks.
  while (!over) std::this_thread::yield();
  EXPECT_CUDA(launch(second_, 1, 32, 0, increase_kernel, x.data()));
  EXPECT_TRUE(holds(fault(), "race between operations"));

  vgpu::forget_faults();
  EXPECT_CUDA(launch(first_, 1, 32, 0, increase_kernel, x.data()));
  EXPECT_CUDA(cudaStreamSynchronize(first_));
  EXPECT_CUDA(launch(second_, 1, 32, 0, increase_kernel, x.data()));
  EXPECT_EQ(fault(), "");
}

TEST_F(Streams, CopiesRaceToo) {
  Buffer<int> x(std::vector<int>(32, 1));
  int* host = nullptr;  // pinned: the call does not wait
  EXPECT_CUDA(cudaMallocHost(&host, 128));
  EXPECT_CUDA(launch(first_, 1, 32, 0, increase_kernel, x.data()));
  // Says so already if the copy was quick.
  const cudaError_t error = cudaMemcpyAsync(host, x.data(), 128, cudaMemcpyDeviceToHost, second_);
  EXPECT_TRUE(error == cudaSuccess || error == cudaErrorLaunchFailure);
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "memcpy")) << text;
  EXPECT_TRUE(holds(text, "increase_kernel")) << text;
  vgpu::forget_faults();
  EXPECT_CUDA(cudaFreeHost(host));
}

TEST_F(Streams, ReadersDoNotRace) {
  Buffer<int> x(std::vector<int>(32, 1)), a(32), b(32);
  EXPECT_CUDA(launch(first_, 1, 32, 0, sum_kernel, static_cast<const int*>(x.data()), a.data()));
  EXPECT_CUDA(launch(second_, 1, 32, 0, sum_kernel, static_cast<const int*>(x.data()), b.data()));
  EXPECT_EQ(fault(), "");
}

// A write over what the other stream may still read.
TEST_F(Streams, WriteAfterRead) {
  Buffer<int> x(std::vector<int>(32, 1)), sum(32);
  EXPECT_CUDA(launch(first_, 1, 32, 0, sum_kernel, static_cast<const int*>(x.data()), sum.data()));
  EXPECT_CUDA(launch(second_, 1, 32, 0, fill_kernel, x.data(), 7));
  EXPECT_TRUE(holds(fault(), "race between operations"));
}

TEST_F(Streams, MemoryFreedInAStreamIsGoneForLaterWork) {
  int* x = nullptr;
  EXPECT_CUDA(cudaMallocAsync(reinterpret_cast<void**>(&x), 128, first_));
  EXPECT_CUDA(launch(first_, 1, 32, 0, fill_kernel, x, 1));
  EXPECT_CUDA(cudaFreeAsync(x, first_));
  EXPECT_CUDA(cudaStreamSynchronize(first_));
  EXPECT_EQ(fault(), "");
  EXPECT_CUDA(launch(first_, 1, 32, 0, fill_kernel, x, 1));
  EXPECT_TRUE(holds(fault(), "use after free"));
}

// Small tensors of two streams may lie side by side; those that share a word do not.
TEST_F(Streams, NeighboursDoNotRace) {
  Buffer<int> x(std::vector<int>(16, 1));
  for (int i = 0; i < 8; ++i) {
    EXPECT_CUDA(launch(first_, 1, 1, 0, increase_kernel, x.data() + 2 * i));
    EXPECT_CUDA(launch(second_, 1, 1, 0, increase_kernel, x.data() + 2 * i + 1));
  }
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(x.host(), std::vector<int>(16, 2));
  EXPECT_CUDA(launch(first_, 1, 4, 0, increase_kernel, x.data()));
  EXPECT_CUDA(launch(second_, 1, 4, 0, increase_kernel, x.data() + 3));
  EXPECT_TRUE(holds(fault(), "race between operations"));
}

// Memory that one stream frees while another may still use it.
TEST_F(Streams, FreeingUnderAnotherStreamsUseIsARace) {
  int* x = nullptr;
  EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&x), 128));
  EXPECT_CUDA(launch(first_, 1, 32, 0, fill_kernel, x, 1));
  EXPECT_CUDA(cudaFreeAsync(x, second_));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "race between operations") || holds(text, "use after free")) << text;
}

TEST_F(Streams, TheDefaultStreamWaitsForOthersAndTheyForIt) {
  cudaStream_t blocking = nullptr;
  EXPECT_CUDA(cudaStreamCreate(&blocking));
  Buffer<int> x(32), sum(32);
  EXPECT_CUDA(launch(blocking, 1, 32, 0, fill_kernel, x.data(), 2));
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, increase_kernel, x.data()));
  EXPECT_CUDA(
      launch(blocking, 1, 32, 0, sum_kernel, static_cast<const int*>(x.data()), sum.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(sum.host()[0], 96);
  EXPECT_CUDA(cudaStreamDestroy(blocking));
}

TEST_F(Streams, HostFunctionsAndEventTimes) {
  cudaEvent_t end = nullptr;
  EXPECT_CUDA(cudaEventCreate(&end));
  std::atomic<int> called = 0;
  EXPECT_CUDA(cudaEventRecord(event_, first_));
  EXPECT_CUDA(cudaLaunchHostFunc(
      first_,
      [](void* data) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ++*static_cast<std::atomic<int>*>(data);
      },
      &called));
  EXPECT_CUDA(cudaEventRecord(end, first_));
  EXPECT_CUDA(cudaEventSynchronize(end));
  EXPECT_EQ(called, 1);
  float milliseconds = 0;
  EXPECT_CUDA(cudaEventElapsedTime(&milliseconds, event_, end));
  EXPECT_GE(milliseconds, 20.0f);
  EXPECT_CUDA(cudaEventQuery(end));
  EXPECT_CUDA(cudaEventDestroy(end));
}

// One kernel waits for a flag that a kernel on another stream sets.
__global__ void wait_kernel(int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) {
    }
    *out = 1;
  }
}
__global__ void set_kernel(int* flag) { atomicExch(flag, 1); }

TEST_F(Streams, KernelsOfTwoStreamsRunSideBySide) {
  Buffer<int> flag(std::vector<int>{0}), out(1);
  EXPECT_CUDA(launch(first_, 1, 32, 0, wait_kernel, flag.data(), out.data()));
  EXPECT_CUDA(launch(second_, 1, 1, 0, set_kernel, flag.data()));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(out.host()[0], 1);
}

// However a kernel looks at its flags.
enum class Look { kVolatile, kAdd, kTwoInTurn };
__global__ void look_kernel(int* flags, int* out, Look look) {
  if (look == Look::kVolatile)
    while (*static_cast<volatile int*>(flags) == 0) {
    }
  if (look == Look::kAdd)
    while (atomicAdd(flags, 0) == 0) {
    }
  if (look == Look::kTwoInTurn)
    while (__atomic_load_n(flags, __ATOMIC_ACQUIRE) == 0 ||
           __atomic_load_n(flags + 1, __ATOMIC_ACQUIRE) == 0 ||
           __atomic_load_n(flags, __ATOMIC_ACQUIRE) == 0) {
    }
  out[threadIdx.x] = 1;
}

TEST_F(Streams, AWaitingKernelLetsOthersRun) {
  for (const Look look : {Look::kVolatile, Look::kAdd, Look::kTwoInTurn}) {
    Buffer<int> flags(std::vector<int>{0, 0}), out(64);
    EXPECT_CUDA(launch(first_, 1, 64, 0, look_kernel, flags.data(), out.data(), look));
    EXPECT_CUDA(launch(second_, 1, 1, 0, set_kernel, flags.data()));
    EXPECT_CUDA(launch(second_, 1, 1, 0, set_kernel, flags.data() + 1));
    EXPECT_EQ(fault(), "");
    EXPECT_EQ(out.host()[63], 1);
  }
}

__global__ void endless_kernel(const int* x) {
  int i = 0;
  while (i < 5) i = x[i];
}

TEST_F(Streams, AKernelThatNeverEndsIsAFault) {
  const vgpu::Settings before = vgpu::settings();
  vgpu::settings().deadline = 0.1;
  Buffer<int> flags(std::vector<int>{0, 0}), out(32);
  for (const Look look : {Look::kVolatile, Look::kAdd}) {
    EXPECT_CUDA(launch(first_, 1, 32, 0, look_kernel, flags.data(), out.data(), look));
    const std::string text = fault();
    EXPECT_TRUE(holds(text, "endless kernel: ")) << text;
    EXPECT_TRUE(holds(text, "waiting for a flag")) << text;
    EXPECT_TRUE(holds(text, "look_kernel")) << text;
    vgpu::forget_faults();
  }
  EXPECT_CUDA(launch(first_, 1, 1, 0, endless_kernel, static_cast<const int*>(flags.data())));
  EXPECT_TRUE(holds(fault(), "endless kernel: "));
  vgpu::settings() = before;
}

TEST_F(Streams, CallsAreCounted) {
  Buffer<int> x(32);
  const vgpu::Counters before = vgpu::counters();
  EXPECT_CUDA(launch(first_, 1, 32, 0, fill_kernel, x.data(), 1));
  EXPECT_CUDA(launch(first_, 1, 32, 0, increase_kernel, x.data()));
  EXPECT_CUDA(cudaStreamSynchronize(first_));
  EXPECT_CUDA(cudaMemsetAsync(x.data(), 0, 128, first_));
  const vgpu::Counters after = vgpu::counters();
  EXPECT_EQ(after.launches - before.launches, 2u);
  EXPECT_EQ(after.host_waits - before.host_waits, 1u);
  EXPECT_EQ(after.copies - before.copies, 1u);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(fault(), "");
}

TEST_F(Streams, Devices) {
  int count = 0;
  EXPECT_CUDA(cudaGetDeviceCount(&count));
  ASSERT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaSetDevice(1));
  int* x = nullptr;
  EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&x), 128));
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, fill_kernel, x, 1));
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaFree(x));
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(&count)),
            cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

}  // namespace
}  // namespace vgpu_tests
