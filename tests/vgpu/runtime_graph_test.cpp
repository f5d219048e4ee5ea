// Captured graphs: replays, forks through events, and what may not be done meanwhile.
#include "vgpu/counters.h"
#include "vgpu/device_buffer.cuh"

namespace vgpu_tests {
namespace {

class RuntimeGraph : public VirtualGpu {
 protected:
  void SetUp() override {
    VirtualGpu::SetUp();
    EXPECT_CUDA(cudaStreamCreateWithFlags(&main_, cudaStreamNonBlocking));
    EXPECT_CUDA(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking));
    EXPECT_CUDA(cudaEventCreate(&fork_));
    EXPECT_CUDA(cudaEventCreate(&join_));
  }
  void TearDown() override {
    cudaStreamDestroy(main_);
    cudaStreamDestroy(side_);
    cudaEventDestroy(fork_);
    cudaEventDestroy(join_);
    cudaGetLastError();
    VirtualGpu::TearDown();
  }
  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(main_, cudaStreamCaptureModeGlobal), cudaSuccess);
  }
  cudaError_t end() { return cudaStreamEndCapture(main_, &graph_); }

  cudaStream_t main_ = nullptr, side_ = nullptr;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
  cudaGraph_t graph_ = nullptr;
};

__global__ void add_kernel(int* x, int value) { x[threadIdx.x] += value; }
__global__ void sum_kernel(const int* a, const int* b, int* sum) {
  sum[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

TEST_F(RuntimeGraph, RunsNothingAtCaptureAndEverythingAtEachLaunch) {
  Buffer<int> x(std::vector<int>(32, 0));
  begin();
  EXPECT_CUDA(launch(main_, 1, 32, 0, add_kernel, x.data(), 1));
  EXPECT_CUDA(launch(main_, 1, 32, 0, add_kernel, x.data(), 2));
  cudaStreamCaptureStatus status;
  EXPECT_CUDA(cudaStreamIsCapturing(main_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  ASSERT_EQ(end(), cudaSuccess);
  EXPECT_EQ(x.host()[0], 0);
  std::size_t count = 0;
  EXPECT_CUDA(cudaGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 2u);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph_), cudaSuccess);
  EXPECT_CUDA(cudaGraphDestroy(graph_));
  const vgpu::Counters before = vgpu::counters();
  for (int i = 0; i < 5; ++i) EXPECT_CUDA(cudaGraphLaunch(exec, i % 2 == 0 ? main_ : side_));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(vgpu::counters().graph_launches - before.graph_launches, 5u);
  EXPECT_EQ(vgpu::counters().launches, before.launches);
  EXPECT_EQ(x.host(), std::vector<int>(32, 15));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(RuntimeGraph, ForksAndJoinsByEvents) {
  Buffer<int> a(std::vector<int>(32, 1)), b(std::vector<int>(32, 2)), c(32);
  begin();
  EXPECT_CUDA(cudaEventRecord(fork_, main_));
  EXPECT_CUDA(cudaStreamWaitEvent(side_, fork_));
  EXPECT_CUDA(launch(side_, 1, 32, 0, add_kernel, b.data(), 10));
  EXPECT_CUDA(cudaEventRecord(join_, side_));
  EXPECT_CUDA(launch(main_, 1, 32, 0, add_kernel, a.data(), 100));
  EXPECT_CUDA(cudaStreamWaitEvent(main_, join_));
  EXPECT_CUDA(launch(main_, 1, 32, 0, sum_kernel, static_cast<const int*>(a.data()),
                     static_cast<const int*>(b.data()), c.data()));
  ASSERT_EQ(end(), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph_), cudaSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_CUDA(cudaGraphLaunch(exec, main_));
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(c.host(), std::vector<int>(32, 333));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph_));
}

// The side branch is joined, but the sum does not wait for it.
TEST_F(RuntimeGraph, ARaceWithinAGraphIsFound) {
  Buffer<int> a(std::vector<int>(32, 1)), b(std::vector<int>(32, 2)), c(32);
  begin();
  EXPECT_CUDA(cudaEventRecord(fork_, main_));
  EXPECT_CUDA(cudaStreamWaitEvent(side_, fork_));
  EXPECT_CUDA(launch(side_, 1, 32, 0, add_kernel, b.data(), 10));
  EXPECT_CUDA(cudaEventRecord(join_, side_));
  EXPECT_CUDA(launch(main_, 1, 32, 0, sum_kernel, static_cast<const int*>(a.data()),
                     static_cast<const int*>(b.data()), c.data()));
  EXPECT_CUDA(cudaStreamWaitEvent(main_, join_));
  ASSERT_EQ(end(), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph_), cudaSuccess);
  EXPECT_CUDA(cudaGraphLaunch(exec, main_));
  const std::string text = fault();
  EXPECT_TRUE(holds(text, "race between operations")) << text;
  EXPECT_TRUE(holds(text, "sum_kernel")) << text;
  EXPECT_TRUE(holds(text, "add_kernel")) << text;
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph_));
}

TEST_F(RuntimeGraph, WorkThatDoesNotComeBackIsAnError) {
  Buffer<int> x(std::vector<int>(32, 0));
  begin();
  EXPECT_CUDA(cudaEventRecord(fork_, main_));
  EXPECT_CUDA(cudaStreamWaitEvent(side_, fork_));
  EXPECT_CUDA(launch(side_, 1, 32, 0, add_kernel, x.data(), 1));
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
  // Both streams are free again.
  EXPECT_CUDA(launch(side_, 1, 32, 0, add_kernel, x.data(), 1));
  EXPECT_CUDA(cudaStreamSynchronize(side_));
  EXPECT_EQ(x.host()[0], 1);
}

TEST_F(RuntimeGraph, WaitsAndAllocationsSpoilTheCapture) {
  const auto spoils = [&](auto call, cudaError_t expected) {
    begin();
    EXPECT_EQ(call(), expected);
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph_, nullptr);
  };
  spoils([&] { return cudaStreamSynchronize(main_); }, cudaErrorStreamCaptureUnsupported);
  spoils([&] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported);
  void* pointer = nullptr;
  spoils([&] { return cudaMalloc(&pointer, 4); }, cudaErrorStreamCaptureUnsupported);
  EXPECT_CUDA(cudaEventRecord(fork_, side_));
  spoils([&] { return cudaStreamWaitEvent(main_, fork_); }, cudaErrorStreamCaptureIsolation);
  spoils(
      [&] {
        EXPECT_CUDA(cudaEventRecord(join_, main_));
        return cudaEventSynchronize(join_);
      },
      cudaErrorCapturedEvent);
}

TEST_F(RuntimeGraph, TheDefaultStreamMayNotMeetACapture) {
  Buffer<int> x(std::vector<int>(32, 0));
  cudaStream_t blocking = nullptr;
  EXPECT_CUDA(cudaStreamCreate(&blocking));
  EXPECT_CUDA(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(launch(nullptr, 1, 32, 0, add_kernel, x.data(), 1), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph_), cudaErrorStreamCaptureInvalidated);
  EXPECT_CUDA(cudaStreamDestroy(blocking));
  // A stream that refuses the default stream's order is none of its business.
  EXPECT_CUDA(cudaStreamBeginCapture(main_, cudaStreamCaptureModeRelaxed));
  EXPECT_CUDA(launch(nullptr, 1, 32, 0, add_kernel, x.data(), 1));
  void* pointer = nullptr;
  EXPECT_CUDA(cudaMalloc(&pointer, 4));
  EXPECT_CUDA(end());
  EXPECT_CUDA(cudaGraphDestroy(graph_));
  EXPECT_CUDA(cudaFree(pointer));
}

}  // namespace
}  // namespace vgpu_tests
