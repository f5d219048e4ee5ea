// Graphs: what is captured runs at each replay, at addresses that nobody else gets.
#include "lockstep/core/graph.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "lockstep/core/config.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_memory.h"
#include "lockstep/core/pinned_memory.h"
#include "lockstep/core/tensor.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep {
namespace {

using testing::message_of;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class DeviceGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device, real or virtual";
    empty_device_cache();
    start_ = device_memory_stats(device_);
  }
  Tensor numbers(float first) const {
    std::vector<float> values;
    for (int i = 0; i < 12; ++i) values.push_back(first + static_cast<float>(i));
    return tensor(values, {3, 4});
  }
  std::uint64_t reserved() const { return device_memory_stats(device_).reserved - start_.reserved; }

  const Device device_ = cuda_device();
  AllocatorStats start_;
};

TEST_F(DeviceGraph, EachReplayWorksOnNewInput) {
  const Tensor x = numbers(0).to(device_);
  Tensor y = full({4, 3}, -1, {kF32, device_});
  const Graph graph = Graph::capture(device_, [&] { copy_elements(y, x.t()); });
  EXPECT_EQ(graph.device(), device_);
  EXPECT_SAME_BITS(y.to(kCpu), full({4, 3}, -1));  // nothing is carried out at the capture
  for (float first : {10.0f, 20.0f}) {
    copy_elements(x, numbers(first));
    graph.replay();
    EXPECT_SAME_BITS(y.to(kCpu), numbers(first).t().contiguous());
  }
}

// The work's temporaries belong to a stream that goes on being used: its later work must not get
// them, since each replay writes them.
TEST_F(DeviceGraph, ItsMemoryIsItsOwn) {
  const Tensor x = numbers(0).to(device_);
  Stream side = Stream::create(device_);
  Tensor y;
  void* inside = nullptr;
  const Graph graph = Graph::capture(device_, [&] {
    Stream main = current_stream(device_);
    side.wait(main.record());
    {
      const StreamGuard guard(side);
      const Tensor turned = x.t().contiguous();  // free after this, as others would think
      inside = turned.data();
      y = turned.t().contiguous();
    }
    main.wait(side.record());
  });
  std::vector<Tensor> others;
  {
    const StreamGuard guard(side);
    for (int i = 0; i < 20; ++i) {
      others.push_back(full({3, 4}, i, {kF32, device_}));
      EXPECT_NE(others.back().data(), inside);
    }
  }
  side.synchronize();
  copy_elements(x, numbers(5));
  graph.replay();
  EXPECT_SAME_BITS(y.to(kCpu), numbers(5));
  for (int i = 0; i < 20; ++i)
    EXPECT_SAME_BITS(others[static_cast<std::size_t>(i)].to(kCpu), full({3, 4}, i));
}

TEST_F(DeviceGraph, WithinACaptureMemoryIsUsedAgain) {
  void* first = nullptr;
  void* second = nullptr;
  const Graph graph = Graph::capture(device_, [&] {
    first = zeros({1000}, {kF32, device_}).data();
    second = zeros({1000}, {kF32, device_}).data();
  });
  EXPECT_EQ(first, second);
}

TEST_F(DeviceGraph, ReplaysNeitherAllocateNorWait) {
  const Tensor x = numbers(0).to(device_);
  Tensor y;
  const Graph graph = Graph::capture(device_, [&] { y = x.t().contiguous(); });
  const AllocatorStats before = device_memory_stats(device_);
  const std::uint64_t waits = host_synchronizations();
  for (int i = 0; i < 10; ++i) graph.replay();
  const AllocatorStats after = device_memory_stats(device_);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(host_synchronizations(), waits);
}

TEST_F(DeviceGraph, ItsMemoryGoesBackWithIt) {
  {
    const Graph graph = Graph::capture(device_, [&] {
      zeros({30 * kMiB}, {kU8, device_}).clone();
    });
    graph.replay();
    EXPECT_EQ(reserved(), 60u * kMiB);
    EXPECT_EQ(empty_device_cache(), 0u);  // not while there may be replays
  }
  EXPECT_EQ(reserved(), 0u);
}

TEST_F(DeviceGraph, ATensorMayOutliveIt) {
  const Tensor three = full({100}, 3, {kU8, device_});
  Tensor y;
  {
    const Graph graph = Graph::capture(device_, [&] {
      y = zeros({30 * kMiB}, {kU8, device_});
      copy_elements(y.slice(0, 0, 100), three);
      y.clone();
    });
    graph.replay();
  }
  EXPECT_SAME_BITS(y.slice(0, 0, 100).to(kCpu), full({100}, 3, {kU8}));
  const std::uint64_t with_tensor = reserved();
  y = {};
  EXPECT_EQ(with_tensor - reserved(), 30u * kMiB);
}

TEST_F(DeviceGraph, ReplaysOnAnyStream) {
  const Tensor x = numbers(1).to(device_);
  Tensor y;
  const Graph graph = Graph::capture(device_, [&] { y = x.t().contiguous(); });
  Stream stream = Stream::create(device_);
  stream.wait(current_stream(device_).record());
  {
    const StreamGuard guard(stream);
    graph.replay();
    EXPECT_SAME_BITS(y.to(kCpu), numbers(1).t().contiguous());
  }
  current_stream(device_).wait(stream.record());
}

TEST_F(DeviceGraph, StreamsForkAndJoinAndKeepTheirMemoryApart) {
  const Tensor x = numbers(1).to(device_);
  Tensor there, here;
  Stream side = Stream::create(device_);
  {
    const Graph graph = Graph::capture(device_, [&] {
      Stream main = current_stream(device_);
      Tensor shared = x.t().contiguous();
      void* address = shared.data();
      side.wait(main.record());
      {
        const StreamGuard guard(side);
        there = shared.t().contiguous();
        shared.storage()->record_stream(side);
      }
      shared = {};
      here = zeros({4, 3}, {kF32, device_});
      EXPECT_NE(here.data(), address);  // side may still read it
      main.wait(side.record());
    });
    for (int i = 0; i < 3; ++i) graph.replay();
    EXPECT_SAME_BITS(there.to(kCpu), numbers(1));
    EXPECT_SAME_BITS(here.to(kCpu), zeros({4, 3}));
  }
  there = here = {};
  empty_device_cache();
  EXPECT_EQ(device_memory_stats(device_).live - start_.live, 512u);  // x
}

TEST_F(DeviceGraph, ATensorFromBeforeThatACapturedStreamUsedIsFreedLater) {
  Tensor x = numbers(1).to(device_);
  const Graph graph = Graph::capture(device_, [&] {
    x.storage()->record_stream(current_stream(device_));
    x = {};
    zeros({5}, {kF32, device_});
    // Another thread looks for memory that can be had again; a captured stream tells it nothing.
    std::string said;
    std::thread([&] { said = message_of<Error>([&] { zeros({5}, {kF32, device_}); }); }).join();
    EXPECT_EQ(said, "");
  });
  const std::uint64_t live = device_memory_stats(device_).live;
  for (int i = 0; i < 3; ++i) zeros({5}, {kF32, device_});
  EXPECT_EQ(device_memory_stats(device_).live, live);
  empty_device_cache();
}

TEST_F(DeviceGraph, PinnedMemoryIsReadAtEachReplay) {
  const Tensor host = pin_memory(numbers(0)), back = empty_pinned({3, 4});
  const Tensor x = zeros({3, 4}, {kF32, device_});
  const Graph graph = Graph::capture(device_, [&] {
    for (int i = 0; i < 2; ++i) copy_elements(x, host, true);
    copy_elements(back, x, true);
  });
  copy_elements(host, numbers(7));
  graph.replay();
  current_stream(device_).synchronize();
  EXPECT_SAME_BITS(back, numbers(7));
}

// After each refusal streams and memory are as good as before.
class GraphRefusals : public DeviceGraph {
 protected:
  void TearDown() override {
    if (cuda_device_count() == 0) return;
    const Tensor x = numbers(3).to(device_);
    Tensor y;
    const Graph graph = Graph::capture(device_, [&] { y = x.t().contiguous(); });
    graph.replay();
    EXPECT_SAME_BITS(y.to(kCpu), numbers(3).t().contiguous());
  }
};

TEST_F(GraphRefusals, WaitsOfTheHost) {
  const Tensor x = ones({1}, {kF32, device_});
  const char* const kPart = "not possible inside Graph::capture()";
  EXPECT_HOLDS(message_of<Error>([&] { Graph::capture(device_, [&] { x.item(); }); }), kPart);
  EXPECT_HOLDS(message_of<Error>([&] {
                 Graph::capture(device_, [&] { current_stream(device_).record().synchronize(); });
               }),
               kPart);
  EXPECT_HOLDS(
      message_of<Error>([&] { Graph::capture(device_, [&] { copy_elements(x, ones({1})); }); }),
      kPart);
  EXPECT_HOLDS(message_of<Error>([&] { Graph::capture(device_, [&] { empty_device_cache(); }); }),
               kPart);
}

TEST_F(GraphRefusals, TasksOfTheHost) {
  EXPECT_HOLDS(message_of<Error>([&] {
                 Graph::capture(device_, [&] { current_stream(device_).enqueue([] {}); });
               }),
               "a task of the host runs once");
}

TEST_F(GraphRefusals, MemoryForAnotherThread) {
  std::string said;
  const Graph graph = Graph::capture(device_, [&] {
    const Stream stream = current_stream(device_);
    std::thread([&] {
      const StreamGuard guard(stream);
      said = message_of<Error>([&] { empty({3}, {kF32, device_}); });
    }).join();
  });
  EXPECT_HOLDS(said, "only the thread inside Graph::capture() can have any");
}

TEST_F(GraphRefusals, ACaptureInsideACapture) {
  EXPECT_HOLDS(
      message_of<Error>([&] { Graph::capture(device_, [&] { Graph::capture(device_, [] {}); }); }),
      "graph: not possible inside");
}

TEST_F(GraphRefusals, WhatTheWorkThrowsIsPassedOn) {
  EXPECT_EQ(message_of<std::runtime_error>([&] {
              Graph::capture(device_, [&] {
                zeros({5}, {kF32, device_});
                throw std::runtime_error("changed its mind");
              });
            }),
            "changed its mind");
}

TEST_F(GraphRefusals, AStreamThatDoesNotComeBack) {
  Stream side = Stream::create(device_);
  EXPECT_HOLDS(message_of<Error>([&] {
                 Graph::capture(device_, [&] {
                   side.wait(current_stream(device_).record());
                   const StreamGuard guard(side);
                   zeros({5}, {kF32, device_});
                 });
               }),
               "cudaErrorStreamCaptureUnjoined");
}

TEST(Graph, IsNotForTheCpu) {
  EXPECT_HOLDS(message_of<Error>([] { Graph::capture(kCpu, [] {}); }),
               "graph: only a CUDA device captures work");
}

}  // namespace
}  // namespace lockstep
