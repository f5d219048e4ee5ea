#include "lockstep/core/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "lockstep/core/check.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace lockstep {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// From here on a block is its own mapping (backed by huge pages where the kernel has them).
constexpr std::size_t kLargeBytes = kHugePage;
constexpr int kStepsPerDoubling = 8;
constexpr int kSmallClasses = 1 + kStepsPerDoubling * 16;

// Block sizes grow by 1/8 of a power of two, so that at most 12.5 % of a block is unused.
struct SizeClass {
  int index;
  std::size_t capacity;
};

SizeClass size_class(std::size_t bytes) {
  const std::size_t units = (bytes + kAlignment - 1) / kAlignment;
  if (units <= kStepsPerDoubling) return {static_cast<int>(units), units * kAlignment};
  const int log = std::bit_width(units - 1) - 1;
  const std::size_t step = std::max<std::size_t>((std::size_t{1} << log) / kStepsPerDoubling, 1);
  const std::size_t rounded = (units + step - 1) / step * step;
  const std::size_t within = (rounded - (std::size_t{1} << log)) / step;
  return {static_cast<int>((log - 2) * kStepsPerDoubling + within), rounded * kAlignment};
}

// A large request takes a cached block up to this much larger than itself.
std::size_t largest_fit(std::size_t capacity) { return capacity + capacity / 4; }

// With the address sanitizer, cached blocks and what rounding adds to a request are out of bounds.
void forbid(void* p, std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(p, bytes);
#else
  (void)p, (void)bytes;
#endif
}
void permit(void* p, std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(p, bytes);
#else
  (void)p, (void)bytes;
#endif
}

void* system_allocate(std::size_t capacity) {
  if (capacity < kLargeBytes) return std::aligned_alloc(kAlignment, capacity);
  void* p = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, capacity, MADV_HUGEPAGE);
  return p;
}

void system_free(CpuAllocator::Block block) noexcept {
  permit(block.data, block.capacity);
  if (block.capacity < kLargeBytes)
    std::free(block.data);
  else
    munmap(block.data, block.capacity);
}

}  // namespace

struct CpuAllocator::State {
  mutable std::mutex mutex;
  std::array<std::vector<void*>, kSmallClasses + 1> small;
  std::multimap<std::size_t, void*> large;
  AllocatorStats stats;

  void* take_cached(SizeClass wanted, std::size_t* capacity) {
    if (wanted.capacity < kLargeBytes) {
      auto& bin = small[wanted.index];
      if (bin.empty()) return nullptr;
      void* p = bin.back();
      bin.pop_back();
      return p;
    }
    auto it = large.lower_bound(wanted.capacity);
    if (it == large.end() || it->first > largest_fit(wanted.capacity)) return nullptr;
    *capacity = it->first;
    void* p = it->second;
    large.erase(it);
    return p;
  }

  std::size_t release_cache() noexcept {
    std::size_t released = 0;
    auto release = [&](Block block) {
      system_free(block);
      released += block.capacity;
    };
    for (int c = 1; c <= kSmallClasses; ++c) {
      if (small[c].empty()) continue;
      const int within = (c - 1) % kStepsPerDoubling;
      const std::size_t capacity = c <= kStepsPerDoubling
                                       ? c * kAlignment
                                       : ((std::size_t{kStepsPerDoubling} + within + 1)
                                          << ((c - 1) / kStepsPerDoubling - 1)) *
                                             kAlignment;
      for (void* p : small[c]) release({p, capacity});
      small[c].clear();
    }
    for (auto [capacity, p] : large) release({p, capacity});
    large.clear();
    stats.reserved -= released;
    return released;
  }
};

CpuAllocator::CpuAllocator() : state_(new State) {}

CpuAllocator& CpuAllocator::instance() {
  static CpuAllocator* allocator = new CpuAllocator;
  return *allocator;
}

CpuAllocator::Block CpuAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  LOCKSTEP_CHECK_AS(OutOfMemoryError, bytes < (std::size_t{1} << 62),
                    "out of memory: {} bytes requested, more than any address space", bytes);
  SizeClass wanted = size_class(bytes);
  if (wanted.capacity >= kLargeBytes) wanted.capacity = (wanted.capacity + 4095) / 4096 * 4096;
  std::lock_guard lock(state_->mutex);
  AllocatorStats& stats = state_->stats;
  ++stats.allocations;
  std::size_t capacity = wanted.capacity;
  void* p = state_->take_cached(wanted, &capacity);
  if (!p) {
    ++stats.system_allocations;
    p = system_allocate(capacity);
    if (!p && state_->release_cache() > 0) p = system_allocate(capacity);
    LOCKSTEP_CHECK_AS(OutOfMemoryError, p,
                      "out of memory: {} bytes requested; {} live, {} at the peak", bytes,
                      stats.live, stats.peak_live);
    stats.reserved += capacity;
    stats.peak_reserved = std::max(stats.peak_reserved, stats.reserved);
  }
  stats.live += capacity;
  stats.peak_live = std::max(stats.peak_live, stats.live);
  forbid(p, capacity);
  permit(p, bytes);
  return {p, capacity};
}

void CpuAllocator::deallocate(Block block) noexcept {
  if (!block.data) return;
  std::lock_guard lock(state_->mutex);
  state_->stats.live -= block.capacity;
  forbid(block.data, block.capacity);
  try {
    if (block.capacity < kLargeBytes)
      state_->small[size_class(block.capacity).index].push_back(block.data);
    else
      state_->large.emplace(block.capacity, block.data);
  } catch (...) {
    system_free(block);  // no memory for the list itself
    state_->stats.reserved -= block.capacity;
  }
}

std::size_t CpuAllocator::empty_cache() noexcept {
  std::lock_guard lock(state_->mutex);
  return state_->release_cache();
}

AllocatorStats CpuAllocator::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

void CpuAllocator::reset_peak() {
  std::lock_guard lock(state_->mutex);
  state_->stats.peak_live = state_->stats.live;
  state_->stats.peak_reserved = state_->stats.reserved;
}

}  // namespace lockstep
