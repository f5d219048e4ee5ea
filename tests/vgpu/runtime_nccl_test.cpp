// NCCL on the virtual GPU: ranks as threads and as processes, and what goes wrong with them.
#include <nccl.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "vgpu/device_buffer.cuh"
#include "vgpu/processes.h"

namespace vgpu_tests {
namespace {

#define EXPECT_NCCL(call) EXPECT_EQ(call, ncclSuccess)

struct Rank {
  int number, count;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

ncclUniqueId new_id() {
  ncclUniqueId id;
  EXPECT_NCCL(ncclGetUniqueId(&id));
  return id;
}

void be_rank(const ncclUniqueId& id, int number, int count,
             const std::function<void(Rank&)>& body) {
  EXPECT_CUDA(cudaSetDevice(number));
  Rank rank{number, count};
  EXPECT_CUDA(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
  ASSERT_EQ(ncclCommInitRank(&rank.comm, count, id, number), ncclSuccess)
      << ncclGetLastError(nullptr);
  body(rank);
  if (rank.comm != nullptr) {
    EXPECT_NCCL(ncclCommDestroy(rank.comm));
  }
  EXPECT_CUDA(cudaStreamDestroy(rank.stream));
}

std::size_t files_left() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    count += entry.path().filename().string().rfind("vgpu-nccl-", 0) == 0;
  return count;
}

class RuntimeNccl : public ::testing::Test {
 protected:
  void SetUp() override { setenv("LOCKSTEP_VGPU_DEVICES", "4", 1); }

  // Each in a process of its own; the last argument says which of them may end badly.
  static void as_processes(int count, const std::function<void(Rank&)>& body, int dies = -1) {
    const ncclUniqueId id = new_id();
    const auto statuses = in_processes(count, [&](int r) { be_rank(id, r, count, body); });
    for (int r = 0; r < count; ++r)
      EXPECT_EQ(statuses[static_cast<std::size_t>(r)] == 0, r != dies) << "rank " << r;
  }
  // In one process, which may use CUDA.
  static void as_threads(int count, const std::function<void(Rank&)>& body) {
    const auto statuses = in_processes(1, [&](int) {
      const ncclUniqueId id = new_id();
      std::vector<std::thread> threads;
      for (int r = 0; r < count; ++r) threads.emplace_back([&, r] { be_rank(id, r, count, body); });
      for (auto& thread : threads) thread.join();
    });
    EXPECT_EQ(statuses, std::vector<int>{0});
  }
};

void all_collectives(Rank& rank) {
  const std::size_t n = 200000;  // several chunks
  const auto ranks = static_cast<std::size_t>(rank.count),
             own = static_cast<std::size_t>(rank.number);
  std::vector<float> values(n * ranks);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 1000) + 1000.0f * static_cast<float>(rank.number);
  const float offsets = 1000.0f * static_cast<float>(rank.count * (rank.count - 1) / 2);
  Buffer<float> x(values), y(n * ranks);
  EXPECT_NCCL(ncclAllReduce(x.data(), y.data(), n, ncclFloat, ncclSum, rank.comm, rank.stream));
  EXPECT_CUDA(cudaStreamSynchronize(rank.stream));
  std::vector<float> got(n * ranks);
  const auto fetch = [&](std::size_t count) {
    EXPECT_CUDA(cudaStreamSynchronize(rank.stream));
    EXPECT_CUDA(cudaMemcpy(got.data(), y.data(), count * 4, cudaMemcpyDeviceToHost));
  };
  std::size_t wrong = 0;
  fetch(n);
  for (std::size_t i = 0; i < n; ++i)
    wrong += got[i] != static_cast<float>(i % 1000) * static_cast<float>(rank.count) + offsets;
  EXPECT_EQ(wrong, 0u) << "AllReduce";

  EXPECT_NCCL(ncclReduceScatter(x.data(), y.data(), n, ncclFloat, ncclAvg, rank.comm, rank.stream));
  fetch(n);
  for (std::size_t i = 0; i < n; ++i)
    wrong += got[i] !=
             (static_cast<float>((own * n + i) % 1000) * static_cast<float>(rank.count) + offsets) /
                 static_cast<float>(rank.count);
  EXPECT_EQ(wrong, 0u) << "ReduceScatter";

  EXPECT_NCCL(ncclAllGather(x.data(), y.data(), n, ncclFloat, rank.comm, rank.stream));
  fetch(n * ranks);
  for (std::size_t i = 0; i < n * ranks; ++i)
    wrong += got[i] != static_cast<float>(i % n % 1000) + 1000.0f * static_cast<float>(i / n);
  EXPECT_EQ(wrong, 0u) << "AllGather";

  EXPECT_NCCL(ncclBroadcast(x.data(), y.data(), n, ncclFloat, 1, rank.comm, rank.stream));
  fetch(n);
  for (std::size_t i = 0; i < n; ++i) wrong += got[i] != static_cast<float>(i % 1000) + 1000.0f;
  EXPECT_EQ(wrong, 0u) << "Broadcast";

  // Around the ring, sends before receives: only a group makes that right.
  const int next = (rank.number + 1) % rank.count,
            last = (rank.number + rank.count - 1) % rank.count;
  EXPECT_NCCL(ncclGroupStart());
  EXPECT_NCCL(ncclSend(x.data(), n, ncclFloat, next, rank.comm, rank.stream));
  EXPECT_NCCL(ncclRecv(y.data(), n, ncclFloat, last, rank.comm, rank.stream));
  EXPECT_NCCL(ncclGroupEnd());
  fetch(n);
  for (std::size_t i = 0; i < n; ++i)
    wrong += got[i] != static_cast<float>(i % 1000) + 1000.0f * static_cast<float>(last);
  EXPECT_EQ(wrong, 0u) << "Send and Recv";
  EXPECT_EQ(vgpu::last_fault(rank.number), "");
}

TEST_F(RuntimeNccl, CollectivesOfThreads) { as_threads(4, all_collectives); }
TEST_F(RuntimeNccl, CollectivesOfProcesses) { as_processes(3, all_collectives); }

TEST_F(RuntimeNccl, SumsInTheOrderOfATree) {
  as_threads(4, [](Rank& rank) {
    // One after the other 1 would be left; (1e8 + 1) + (-1e8 + 1) is 0 in f32.
    const float values[] = {1e8f, 1.0f, -1e8f, 1.0f};
    Buffer<float> x(std::vector<float>{values[rank.number]});
    EXPECT_NCCL(ncclAllReduce(x.data(), x.data(), 1, ncclFloat, ncclSum, rank.comm, rank.stream));
    EXPECT_CUDA(cudaStreamSynchronize(rank.stream));
    EXPECT_EQ(x.host()[0], 0.0f);
  });
}

TEST_F(RuntimeNccl, HalfTypesSumInSingle) {
  as_threads(3, [](Rank& rank) {
    // f16 and bf16 of 1 and of 2^-11, 2^-8: each alone would be lost, together they round up.
    const bool first = rank.number == 0;
    Buffer<std::uint16_t> half(
        std::vector<std::uint16_t>{static_cast<std::uint16_t>(first ? 0x3c00 : 0x1000)});
    Buffer<std::uint16_t> bfloat(
        std::vector<std::uint16_t>{static_cast<std::uint16_t>(first ? 0x3f80 : 0x3b80)});
    EXPECT_NCCL(
        ncclAllReduce(half.data(), half.data(), 1, ncclHalf, ncclSum, rank.comm, rank.stream));
    EXPECT_NCCL(ncclAllReduce(bfloat.data(), bfloat.data(), 1, ncclBfloat16, ncclSum, rank.comm,
                              rank.stream));
    EXPECT_CUDA(cudaStreamSynchronize(rank.stream));
    EXPECT_EQ(half.host()[0], 0x3c01);
    EXPECT_EQ(bfloat.host()[0], 0x3f81);
  });
}

void expect_remote_error(Rank& rank) {
  Buffer<float> x(std::vector<float>(8, 1));
  EXPECT_NCCL(ncclAllReduce(x.data(), x.data(), 8, ncclFloat, ncclSum, rank.comm, rank.stream));
  ncclResult_t error = ncclSuccess;
  for (int i = 0; i < 1000 && error == ncclSuccess; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_NCCL(ncclCommGetAsyncError(rank.comm, &error));
  }
  EXPECT_EQ(error, ncclRemoteError);
  // Who comes late may find that a rank which was quicker has left by then, too.
  const std::string text = ncclGetLastError(rank.comm);
  EXPECT_TRUE(text.find("rank 1") != std::string::npos ||
              (rank.number == 2 && text.find("rank 0 is gone") != std::string::npos))
      << text;
  EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);  // hangs until the abort, as on a GPU
  EXPECT_NCCL(ncclCommAbort(rank.comm));
  rank.comm = nullptr;
  EXPECT_CUDA(cudaStreamSynchronize(rank.stream));
}

TEST_F(RuntimeNccl, ARankThatDiesIsAnErrorOfTheOthers) {
  const std::size_t before = files_left();
  as_processes(
      3,
      [](Rank& rank) {
        if (rank.number == 1) _exit(3);
        expect_remote_error(rank);
      },
      1);
  EXPECT_EQ(files_left(), before);
}

TEST_F(RuntimeNccl, ARankThatAbortsIsAnErrorOfTheOthers) {
  as_processes(2, [](Rank& rank) {
    if (rank.number == 0) return expect_remote_error(rank);
    EXPECT_NCCL(ncclCommAbort(rank.comm));
    rank.comm = nullptr;
  });
}

TEST_F(RuntimeNccl, CallsThatDoNotAgreeAreFaults) {
  as_threads(2, [](Rank& rank) {
    Buffer<float> x(std::vector<float>(8, 1));
    EXPECT_NCCL(ncclAllReduce(x.data(), x.data(), rank.number == 0 ? 8 : 7, ncclFloat, ncclSum,
                              rank.comm, rank.stream));
    EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaErrorLaunchFailure);
    const std::string text = vgpu::last_fault(rank.number);
    EXPECT_NE(text.find("AllReduce of 8"), std::string::npos) << text;
    EXPECT_NE(text.find("AllReduce of 7"), std::string::npos) << text;
  });
}

TEST_F(RuntimeNccl, WrongArgumentsAreErrors) {
  as_threads(2, [](Rank& rank) {
    Buffer<float> x(std::vector<float>(8, 1));
    std::vector<float> host(8);
    float* const p = x.data();
    EXPECT_EQ(ncclAllReduce(p, p, 8, ncclFloat, ncclSum, nullptr, rank.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(p, p, 9, ncclFloat, ncclSum, rank.comm, rank.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(p, p + 1, 4, ncclFloat, ncclSum, rank.comm, rank.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(p, nullptr, 8, ncclFloat, ncclSum, rank.comm, rank.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(host.data(), p, 8, ncclFloat, ncclSum, rank.comm, rank.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(p, p, 8, ncclNumTypes, ncclSum, rank.comm, rank.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclBroadcast(p, p, 8, ncclFloat, 2, rank.comm, rank.stream), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    int value = -1;
    EXPECT_NCCL(ncclCommCount(rank.comm, &value));
    EXPECT_EQ(value, 2);
    EXPECT_NCCL(ncclCommUserRank(rank.comm, &value));
    EXPECT_EQ(value, rank.number);
    EXPECT_NCCL(ncclAllReduce(p, p, 0, ncclFloat, ncclSum, rank.comm, rank.stream));
  });
}

TEST_F(RuntimeNccl, TwoRanksOnOneDeviceAreAnError) {
  const ncclUniqueId id = new_id();
  const auto statuses = in_processes(2, [&](int r) {
    ncclComm_t comm = nullptr;
    EXPECT_NE(ncclCommInitRank(&comm, 2, id, r), ncclSuccess);
    EXPECT_EQ(comm, nullptr);
  });
  EXPECT_EQ(statuses, (std::vector<int>{0, 0}));
}

TEST_F(RuntimeNccl, OneThreadForAllDevicesAndAConnectionThatDoesNotBlock) {
  const auto statuses = in_processes(1, [](int) {
    std::vector<ncclComm_t> comms(4);
    ASSERT_EQ(ncclCommInitAll(comms.data(), 4, nullptr), ncclSuccess);
    std::vector<std::unique_ptr<Buffer<int>>> buffers;
    EXPECT_NCCL(ncclGroupStart());
    for (int d = 0; d < 4; ++d) {
      EXPECT_CUDA(cudaSetDevice(d));
      buffers.push_back(std::make_unique<Buffer<int>>(std::vector<int>(4, d)));
      int* const p = buffers.back()->data();
      EXPECT_NCCL(
          ncclAllReduce(p, p, 4, ncclInt, ncclMax, comms[static_cast<std::size_t>(d)], nullptr));
    }
    EXPECT_NCCL(ncclGroupEnd());
    for (int d = 0; d < 4; ++d) {
      EXPECT_CUDA(cudaSetDevice(d));
      EXPECT_EQ(buffers[static_cast<std::size_t>(d)]->host(), std::vector<int>(4, 3));
      EXPECT_NCCL(ncclCommDestroy(comms[static_cast<std::size_t>(d)]));
    }
    // The second rank never comes: the caller sees it, and gives up.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, new_id(), 0, &config), ncclInProgress);
    ncclResult_t error = ncclSuccess;
    EXPECT_NCCL(ncclCommGetAsyncError(comm, &error));
    EXPECT_EQ(error, ncclInProgress);
    EXPECT_NCCL(ncclCommAbort(comm));
  });
  EXPECT_EQ(statuses, std::vector<int>{0});
}

__global__ void add_kernel(float* x, float value) { x[threadIdx.x] += value; }

// As a reducer does it: gradients on one stream, their sum on another.
void reduce_beside(Rank& rank, bool with_event) {
  Buffer<float> x(std::vector<float>(8, 1));
  cudaStream_t compute = nullptr;
  cudaEvent_t ready = nullptr;
  EXPECT_CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
  EXPECT_CUDA(cudaEventCreate(&ready));
  EXPECT_CUDA(launch(compute, 1, 8, 0, add_kernel, x.data(), static_cast<float>(rank.number)));
  EXPECT_CUDA(cudaEventRecord(ready, compute));
  if (with_event) {
    EXPECT_CUDA(cudaStreamWaitEvent(rank.stream, ready));
  }
  EXPECT_NCCL(ncclAllReduce(x.data(), x.data(), 8, ncclFloat, ncclSum, rank.comm, rank.stream));
  if (with_event) {
    EXPECT_CUDA(cudaStreamSynchronize(rank.stream));
    EXPECT_EQ(x.host(), std::vector<float>(8, 3));
    return;
  }
  // Which of the two comes first is open; the device is broken either way.
  while (vgpu::last_fault(rank.number).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::string text = vgpu::last_fault(rank.number);
  EXPECT_NE(text.find("race between operations"), std::string::npos) << text;
  EXPECT_NE(text.find("ncclAllReduce"), std::string::npos) << text;
  EXPECT_NE(text.find("add_kernel"), std::string::npos) << text;
  EXPECT_NCCL(ncclCommAbort(rank.comm));
  rank.comm = nullptr;
}

TEST_F(RuntimeNccl, AMissingEventBeforeTheSumIsARace) {
  as_threads(2, [](Rank& rank) { reduce_beside(rank, true); });
  as_threads(2, [](Rank& rank) { reduce_beside(rank, false); });
}

TEST_F(RuntimeNccl, IsCapturedWithTheRest) {
  as_processes(2, [](Rank& rank) {
    Buffer<float> x(std::vector<float>(8, 1));
    EXPECT_CUDA(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_CUDA(launch(rank.stream, 1, 8, 0, add_kernel, x.data(), 1.0f));
    EXPECT_NCCL(ncclAllReduce(x.data(), x.data(), 8, ncclFloat, ncclSum, rank.comm, rank.stream));
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(rank.stream, &graph), cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
    for (int i = 0; i < 3; ++i) EXPECT_CUDA(cudaGraphLaunch(exec, rank.stream));
    EXPECT_CUDA(cudaStreamSynchronize(rank.stream));
    EXPECT_EQ(x.host(), std::vector<float>(8, 22));  // ((1+1)*2+1)*2 …: 4, 10, 22
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaGraphDestroy(graph));
  });
}

}  // namespace
}  // namespace vgpu_tests
