// A block of bytes shared by all views of it, with the version counter that in-place safety needs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "lockstep/core/allocator.h"
#include "lockstep/core/device.h"
#include "lockstep/core/device_memory.h"

namespace lockstep {

class Storage {
 public:
  // `bytes` from the device's caching allocator, contents undefined.
  explicit Storage(std::size_t bytes, Device device = lockstep::kCpu);
  // Foreign memory; `deleter` (may be empty) runs exactly once, after the last use.
  Storage(void* data, std::size_t bytes, std::function<void(void*)> deleter,
          Device device = lockstep::kCpu);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  // Work that is in `stream` by now uses the memory: freed, it is not given to others before that
  // is done. For the device's memory that another stream than the one current at its making uses;
  // without effect on the CPU and on foreign memory.
  void record_stream(const Stream& stream) const;

  // Counts in-place changes.
  std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void* data_;
  std::size_t bytes_;
  CpuAllocator::Block block_;
  DeviceBlock device_block_;
  std::function<void(void*)> deleter_;
  std::atomic<std::uint64_t> version_{0};
  Device device_;
};

}  // namespace lockstep
