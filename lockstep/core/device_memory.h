// Memory of CUDA devices, cached: after a warm-up no step asks the driver for any. Thread-safe.
//
// A block belongs to the stream that was current when it was allocated. Freed, it can be had again
// at once by work of that stream, which runs later; other streams that use it must be recorded, and
// it stays away until their work is done.
#pragma once

#include <cstddef>

#include "lockstep/core/allocator.h"
#include "lockstep/core/stream.h"

namespace lockstep {

// A part of a piece of device memory; null data for 0 bytes.
struct DeviceBlock {
  void* data = nullptr;
  void* handle = nullptr;  // the allocator's own
};

// Contents undefined. Where the device has no more, the cache is released and the request tried
// once more; then throws OutOfMemoryError naming the request, the peak and the device's memory.
DeviceBlock allocate_device_memory(std::size_t bytes, Device device);
void free_device_memory(const DeviceBlock& block) noexcept;
// Work that is in `stream` by now uses the block.
void record_device_stream(const DeviceBlock& block, const Stream& stream);

AllocatorStats device_memory_stats(Device device);
void reset_device_memory_peak(Device device);
// Returns what is cached and not in use to the driver, of all devices; says how many bytes.
std::size_t empty_device_cache();
// false: from now on every block is asked of the driver, of exactly the bytes wanted, and goes back
// when it is freed, which waits for the device. Slow, but memory checkers (compute-sanitizer, the
// virtual GPU) see where each tensor ends. Graphs' memory stays cached.
void set_device_memory_caching(bool on);

}  // namespace lockstep
