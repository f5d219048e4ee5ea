// The caching allocator of device memory, streams and events.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/device_memory.h"
#include "lockstep/core/pinned_memory.h"
#include "lockstep/core/tensor.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep {
namespace {

using testing::message_of;
using namespace std::chrono_literals;

constexpr std::size_t kMiB = std::size_t{1} << 20;

class DeviceMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device, real or virtual";
    empty_device_cache();
    reset_device_memory_peak(device_);
    start_ = device_memory_stats(device_);
  }
  Tensor bytes(std::size_t n) const {
    return empty({static_cast<std::int64_t>(n)}, {kU8, device_});
  }
  std::uint64_t asked() const {
    return device_memory_stats(device_).system_allocations - start_.system_allocations;
  }

  const Device device_ = cuda_device();
  AllocatorStats start_;
};

TEST_F(DeviceMemory, IsUsedAgainInTheOrderOfItsStream) {
  void* first = bytes(1000).data();
  EXPECT_EQ(bytes(900).data(), first);
  for (int i = 0; i < 10; ++i) bytes(3 * kMiB);
  EXPECT_EQ(asked(), 2u);  // one piece of small blocks, one of larger ones
}

TEST_F(DeviceMemory, AnotherStreamGetsOther) {
  void* first = bytes(1000).data();
  const StreamGuard guard(Stream::create(device_));
  EXPECT_NE(bytes(1000).data(), first);
}

TEST_F(DeviceMemory, WithoutCachingEveryBlockIsTheDriversOwn) {
  set_device_memory_caching(false);
  const std::uint64_t reserved = device_memory_stats(device_).reserved;
  {
    const Tensor a = bytes(13), b = bytes(700);
    EXPECT_EQ(asked(), 2u);
    EXPECT_EQ(device_memory_stats(device_).reserved, reserved + 713);
  }
  EXPECT_EQ(device_memory_stats(device_).reserved, reserved);
  bytes(13);
  EXPECT_EQ(asked(), 3u);
  set_device_memory_caching(true);
  bytes(13);
  bytes(13);
  EXPECT_EQ(asked(), 4u);
}

TEST_F(DeviceMemory, BlocksAreCutAndMerge) {
  {
    const Tensor a = bytes(4 * kMiB), b = bytes(4 * kMiB), c = bytes(8 * kMiB);
    EXPECT_EQ(asked(), 1u);
    EXPECT_EQ(static_cast<char*>(b.data()) - static_cast<char*>(a.data()), 4 * kMiB);
    EXPECT_EQ(device_memory_stats(device_).live - start_.live, 16 * kMiB);
  }
  // A piece whose blocks are all free is whole again: it can be given back.
  EXPECT_EQ(empty_device_cache(), 20 * kMiB);
  EXPECT_EQ(device_memory_stats(device_).reserved, start_.reserved);
}

TEST_F(DeviceMemory, FreedInAnyOrderItIsWholeAgain) {
  for (int order = 0; order < 6; ++order) {
    Tensor part[3] = {bytes(5 * kMiB), bytes(5 * kMiB), bytes(5 * kMiB)};
    const int first = order / 2, second = (first + 1 + order % 2) % 3;
    part[first] = {};
    part[second] = {};
    part[3 - first - second] = {};
    EXPECT_EQ(empty_device_cache(), 20 * kMiB) << "order " << order;
  }
}

TEST_F(DeviceMemory, WhatAnotherStreamUsesStaysAway) {
  Stream other = Stream::create(device_);
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  Tensor x = bytes(1000);
  void* address = x.data();
  other.enqueue([gone] { gone.wait(); });
  x.storage()->record_stream(other);
  x = {};
  EXPECT_NE(bytes(1000).data(), address);
  go.set_value();
  other.synchronize();
  EXPECT_EQ(bytes(1000).data(), address);
}

TEST_F(DeviceMemory, TheCacheIsReleasedBeforeARequestFails) {
  std::vector<Tensor> held;
  const std::size_t half = 600 * kMiB;
  try {
    bytes(half);  // stays in the cache
    bytes(half + 100 * kMiB);
  } catch (const OutOfMemoryError& error) {
    FAIL() << error.what();
  }
  empty_device_cache();
}

TEST_F(DeviceMemory, RunningOutNamesRequestAndPeak) {
  const Tensor held = bytes(10 * kMiB);
  const std::string said = message_of<OutOfMemoryError>([&] { bytes(std::size_t{1} << 42); });
  EXPECT_HOLDS(said, "out of memory on cuda:0: 4398046511104 bytes were asked for; ");
  EXPECT_HOLDS(said, std::to_string(start_.live + 10 * kMiB) + " are in use (at most ");
  // The device is as good as before.
  EXPECT_SAME_BITS(zeros({3}, {kF32, device_}).to(kCpu), zeros({3}));
  EXPECT_THROW(bytes(std::size_t{1} << 62), OutOfMemoryError);
}

TEST_F(DeviceMemory, StepsAfterTheFirstAskForNone) {
  const auto step = [&] {
    const Tensor a = zeros({300, 1000}, {kF32, device_}), b = a.t().contiguous();
    const Tensor c = b.slice(0, 0, 10).clone();
  };
  step();
  const std::uint64_t after = asked();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(asked(), after);
}

TEST_F(DeviceMemory, PinnedMemoryIsUsedAgainOnceItsCopyIsDone) {
  const Tensor there = zeros({100}, {kF32, device_});
  Stream stream = Stream::create(device_);
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  void* address = nullptr;
  {
    stream.wait(current_stream(device_).record());
    const StreamGuard guard(stream);
    stream.enqueue([gone] { gone.wait(); });
    Tensor host = empty_pinned({100});
    address = host.data();
    copy_elements(host, there, true);
  }
  EXPECT_NE(empty_pinned({100}).data(), address);
  go.set_value();
  stream.synchronize();
  const Tensor one = empty_pinned({100}), two = empty_pinned({100});
  EXPECT_TRUE(one.data() == address || two.data() == address);
}

class CudaStreams : public DeviceMemory {};

TEST_F(CudaStreams, TheCurrentOneIsTheThreads) {
  const Stream stream = Stream::create(device_);
  EXPECT_EQ(current_stream(device_), Stream::default_of(device_));
  {
    const StreamGuard guard(stream);
    EXPECT_EQ(current_stream(device_), stream);
    EXPECT_EQ(current_native_stream(device_), stream.native());
    std::thread([&] { EXPECT_EQ(current_native_stream(device_), nullptr); }).join();
  }
  EXPECT_EQ(current_stream(device_), Stream::default_of(device_));
}

TEST_F(CudaStreams, WaitForEventsOfOthersAndOfTheCpu) {
  Stream first = Stream::create(device_, StreamPriority::kHigh), second = Stream::create(device_);
  Stream cpu = Stream::create();
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> order = 0;
  int at_first = -1, at_second = -1;
  cpu.enqueue([gone] { gone.wait(); });
  first.wait(cpu.record());
  first.enqueue([&] { at_first = order++; });
  const Event event = first.record();
  second.wait(event);
  second.enqueue([&] { at_second = order++; });
  cpu.wait(second.record());
  EXPECT_FALSE(event.query());
  EXPECT_FALSE(second.query());
  go.set_value();
  cpu.synchronize();
  EXPECT_EQ(at_first, 0);
  EXPECT_EQ(at_second, 1);
  EXPECT_TRUE(event.query());
  const Event last = second.record();
  last.synchronize();
  EXPECT_GE(last.since(event).count(), 0);
}

TEST_F(CudaStreams, EveryWaitHasADeadline) {
  Stream stream = Stream::create(device_);
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  stream.enqueue([gone] { gone.wait(); });
  const Event event = stream.record();
  EXPECT_THROW(event.synchronize(10ms), TimeoutError);
  EXPECT_THROW(stream.synchronize(10ms), TimeoutError);
  go.set_value();
  event.synchronize();
  stream.synchronize();
}

TEST_F(CudaStreams, ATaskThatThrowsIsHeardOf) {
  Stream stream = Stream::create(device_);
  std::atomic<bool> ran = false;
  stream.enqueue([] { throw Error("a task failed"); });
  stream.enqueue([&] { ran = true; });
  EXPECT_EQ(message_of<Error>([&] { stream.synchronize(); }), "a task failed");
  EXPECT_FALSE(ran);
  stream.enqueue([&] { ran = true; });
  stream.synchronize();
  EXPECT_TRUE(ran);
}

TEST_F(CudaStreams, WaitsOfTheHostAreCounted) {
  const Tensor host = pin_memory(ones({4})), x = empty({4}, {kF32, device_});
  const auto counted = [](const auto& call) {
    const std::uint64_t before = host_synchronizations();
    call();
    return host_synchronizations() - before;
  };
  EXPECT_EQ(counted([&] { copy_elements(x, host, true); }), 0u);
  EXPECT_EQ(counted([&] { x.clone(); }), 0u);
  EXPECT_EQ(counted([&] { x.select(0, 1).item(); }), 1u);
  EXPECT_EQ(counted([&] { copy_elements(x, host); }), 1u);
  EXPECT_EQ(counted([&] { current_stream(device_).record().synchronize(); }), 1u);
}

TEST_F(CudaStreams, DeviceGuardPutsBack) {
  if (cuda_device_count() < 2) GTEST_SKIP() << "one CUDA device only";
  {
    const DeviceGuard guard(cuda_device(1));
    EXPECT_EQ(current_cuda_device(), cuda_device(1));
  }
  EXPECT_EQ(current_cuda_device(), cuda_device(0));
  EXPECT_THROW(DeviceGuard(cuda_device(99)), Error);
}

}  // namespace
}  // namespace lockstep
