// The caching CPU allocator: 64-byte aligned blocks that stay with the process when freed, because
// page faults are what a training step loses most on. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

// Bytes unless said otherwise.
struct AllocatorStats {
  std::uint64_t live = 0;       // asked for and not yet freed, rounded up to block sizes
  std::uint64_t peak_live = 0;  // largest `live` since the start or reset_peak()
  std::uint64_t reserved = 0;   // held from the system: live and cached
  std::uint64_t peak_reserved = 0;
  std::uint64_t allocations = 0;         // calls of allocate
  std::uint64_t system_allocations = 0;  // those that had to ask the system
};

class CpuAllocator {
 public:
  struct Block {
    void* data = nullptr;
    std::size_t capacity = 0;
  };

  // The process's allocator: memory is per process, so this is too. Never destroyed.
  static CpuAllocator& instance();

  // At least `bytes`, contents undefined; {nullptr, 0} for 0. Where the system refuses, the cache
  // is released and the request tried once more; then throws OutOfMemoryError naming the request
  // and the peak.
  Block allocate(std::size_t bytes);
  void deallocate(Block block) noexcept;

  // Returns all cached blocks to the system; says how many bytes that were.
  std::size_t empty_cache() noexcept;

  AllocatorStats stats() const;
  void reset_peak();

  CpuAllocator(const CpuAllocator&) = delete;
  CpuAllocator& operator=(const CpuAllocator&) = delete;

 private:
  CpuAllocator();
  struct State;
  State* state_;
};

}  // namespace lockstep
