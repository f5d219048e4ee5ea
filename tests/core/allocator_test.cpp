// The caching allocator: blocks come back, figures add up, failures leave it whole.
#include "lockstep/core/allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "support/message.h"

namespace lockstep::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Allocator : public ::testing::Test {
 protected:
  void SetUp() override {
    allocator.empty_cache();
    allocator.reset_peak();
    start = allocator.stats();
  }
  void TearDown() override {
    allocator.empty_cache();
    EXPECT_EQ(allocator.stats().live, start.live);
    EXPECT_EQ(allocator.stats().reserved, start.reserved);
  }
  CpuAllocator& allocator = CpuAllocator::instance();
  AllocatorStats start;
};

TEST_F(Allocator, BlocksAreAlignedLargeEnoughAndHardlyLarger) {
  std::vector<std::size_t> sizes;
  for (std::size_t n = 1; n <= 4096; n += 7) sizes.push_back(n);
  for (int bit = 12; bit < 24; ++bit)
    for (std::int64_t near : {-1, 0, 1, 12345}) sizes.push_back((std::size_t{1} << bit) + near);
  for (std::size_t n : sizes) {
    const auto block = allocator.allocate(n);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % 64, 0u) << n;
    EXPECT_GE(block.capacity, n);
    EXPECT_LE(block.capacity, n + std::max<std::size_t>(n / 8, 64) + (n >= kMiB ? 4096 : 0)) << n;
    std::memset(block.data, 1, n);
    allocator.deallocate(block);
  }
}

TEST_F(Allocator, NothingIsNoBlock) {
  const auto block = allocator.allocate(0);
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(block.capacity, 0u);
  allocator.deallocate(block);
  EXPECT_EQ(allocator.stats().allocations, start.allocations);
}

TEST_F(Allocator, AFreedBlockIsTheNextOneOfItsSize) {
  for (std::size_t n : {std::size_t{100}, 300 * 1024ul, 5 * kMiB}) {
    const auto first = allocator.allocate(n);
    allocator.deallocate(first);
    const auto second = allocator.allocate(n);
    EXPECT_EQ(second.data, first.data);
    EXPECT_EQ(second.capacity, first.capacity);
    const auto third = allocator.allocate(n);
    EXPECT_NE(third.data, second.data);
    allocator.deallocate(second);
    allocator.deallocate(third);
  }
  const AllocatorStats now = allocator.stats();
  EXPECT_EQ(now.allocations - start.allocations, 9u);
  EXPECT_EQ(now.system_allocations - start.system_allocations, 6u);
}

TEST_F(Allocator, ALargeRequestTakesALittleLargerBlockButNotAHugeOne) {
  const auto big = allocator.allocate(10 * kMiB);
  allocator.deallocate(big);
  const auto less = allocator.allocate(9 * kMiB);
  EXPECT_EQ(less.data, big.data);
  EXPECT_EQ(less.capacity, big.capacity) << "it must be given back whole";
  allocator.deallocate(less);
  const auto small = allocator.allocate(4 * kMiB);
  EXPECT_NE(small.data, big.data);
  allocator.deallocate(small);
}

TEST_F(Allocator, FiguresAddUp) {
  const auto a = allocator.allocate(1000), b = allocator.allocate(3 * kMiB);
  AllocatorStats now = allocator.stats();
  EXPECT_EQ(now.live - start.live, a.capacity + b.capacity);
  EXPECT_EQ(now.reserved - start.reserved, a.capacity + b.capacity);
  allocator.deallocate(b);
  now = allocator.stats();
  EXPECT_EQ(now.live - start.live, a.capacity);
  EXPECT_EQ(now.peak_live - start.live, a.capacity + b.capacity);
  EXPECT_EQ(now.reserved - start.reserved, a.capacity + b.capacity) << "cached, not returned";
  EXPECT_EQ(allocator.empty_cache(), b.capacity);
  EXPECT_EQ(allocator.empty_cache(), 0u);
  allocator.reset_peak();
  now = allocator.stats();
  EXPECT_EQ(now.peak_live, now.live);
  EXPECT_EQ(now.peak_reserved, now.reserved);
  allocator.deallocate(a);
}

// What is returned to the system is what was taken from it, for every class of sizes.
TEST_F(Allocator, EmptyingTheCacheReturnsEachClassWhole) {
  for (std::size_t n = 1; n < 4 * kMiB; n += n / 16 + 64) {
    const auto block = allocator.allocate(n);
    allocator.deallocate(block);
    ASSERT_EQ(allocator.empty_cache(), block.capacity) << n;
  }
}

TEST_F(Allocator, ARefusalNamesRequestAndPeakAndHarmsNothing) {
  const auto kept = allocator.allocate(2 * kMiB);
  allocator.deallocate(allocator.allocate(kMiB));
  const std::size_t request = std::size_t{1} << 52;
  const std::string text = message_of<OutOfMemoryError>([&] { allocator.allocate(request); });
  EXPECT_HOLDS(text, std::to_string(request));
  EXPECT_HOLDS(text, std::to_string(allocator.stats().peak_live) + " at the peak");
  EXPECT_EQ(allocator.stats().live - start.live, kept.capacity);
  EXPECT_EQ(allocator.stats().reserved - start.reserved, kept.capacity)
      << "the cache goes before the request is given up";
  EXPECT_THROW(allocator.allocate(~std::size_t{0}), OutOfMemoryError);
  const auto again = allocator.allocate(kMiB);
  std::memset(again.data, 1, kMiB);
  allocator.deallocate(again);
  allocator.deallocate(kept);
}

TEST_F(Allocator, ThreadsShareIt) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<CpuAllocator::Block> held;
      for (int i = 0; i < 2000; ++i) {
        if (held.size() < 8 || random() % 2) {
          const std::size_t n = 1 + random() % (random() % 50 == 0 ? 3 * kMiB : 5000);
          held.push_back(allocator.allocate(n));
          std::memset(held.back().data, static_cast<int>(t), std::min<std::size_t>(n, 64));
        } else {
          std::swap(held[random() % held.size()], held.back());
          EXPECT_EQ(*static_cast<std::uint8_t*>(held.back().data), t);
          allocator.deallocate(held.back());
          held.pop_back();
        }
        if (i % 500 == 0) allocator.empty_cache();
      }
      for (const auto& block : held) allocator.deallocate(block);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lockstep::testing
