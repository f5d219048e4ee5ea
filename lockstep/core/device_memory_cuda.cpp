// The caching allocator of device memory: pieces from cudaMalloc, cut into blocks, which merge with
// free neighbours. Sizes and limits are PyTorch's (c10/cuda/CUDACachingAllocator.cpp).
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/device_memory.h"
#include "lockstep/core/error.h"
#include "lockstep/core/error_cuda.h"

namespace lockstep {
namespace {

constexpr std::size_t kGranularity = 512;
constexpr std::size_t kSmallLimit = std::size_t{1} << 20;
constexpr std::size_t kSmallPiece = std::size_t{2} << 20;
constexpr std::size_t kMiddleLimit = std::size_t{10} << 20;
constexpr std::size_t kMiddlePiece = std::size_t{20} << 20;
constexpr std::size_t kLargeGranularity = std::size_t{2} << 20;

struct Block {
  int device = 0;
  CUstream_st* stream = nullptr;
  char* data = nullptr;
  std::size_t bytes = 0;
  bool used = false;
  bool small = false;       // of a piece for small blocks
  Block* before = nullptr;  // neighbours in the piece
  Block* after = nullptr;
  std::vector<Stream> other_streams;
};

struct ByStreamAndSize {
  bool operator()(const Block* a, const Block* b) const {
    if (a->stream != b->stream) return std::less<>()(a->stream, b->stream);
    if (a->bytes != b->bytes) return a->bytes < b->bytes;
    return std::less<>()(a->data, b->data);
  }
};
using FreeBlocks = std::set<Block*, ByStreamAndSize>;

class DevicePool {
 public:
  explicit DevicePool(int device) : device_(device) {}

  Block* allocate(std::size_t asked) {
    const DeviceGuard guard(cuda_device(device_));
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty()) take_back_finished();
    const std::size_t bytes = rounded(asked);
    const bool small = bytes <= kSmallLimit;
    CUstream_st* stream = current_native_stream(cuda_device(device_));
    Block* block = take_free(small, bytes, stream);
    if (!block) block = new_piece(small, bytes, stream, asked);
    split(block, small, bytes);
    block->used = true;
    ++stats_.allocations;
    stats_.live += block->bytes;
    stats_.peak_live = std::max(stats_.peak_live, stats_.live);
    return block;
  }

  void free(Block* block) noexcept {
    const std::lock_guard lock(mutex_);
    stats_.live -= block->bytes;
    try {
      if (!block->other_streams.empty()) {
        Waiting waiting{block, {}};
        for (Stream& stream : block->other_streams) waiting.events.push_back(stream.record());
        block->other_streams.clear();
        waiting_.push_back(std::move(waiting));
        return;
      }
    } catch (...) {
      // The device is beyond use: nothing will read the block.
      block->other_streams.clear();
    }
    give_back(block);
  }

  void record(Block* block, const Stream& stream) {
    const std::lock_guard lock(mutex_);
    if (stream.native() == block->stream) return;
    auto& all = block->other_streams;
    if (std::find(all.begin(), all.end(), stream) == all.end()) all.push_back(stream);
  }

  AllocatorStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_live = stats_.live;
    stats_.peak_reserved = stats_.reserved;
  }

  std::size_t empty_cache() {
    const DeviceGuard guard(cuda_device(device_));
    const std::lock_guard lock(mutex_);
    return release_cached();
  }

 private:
  struct Waiting {
    Block* block;
    std::vector<Event> events;
  };

  static std::size_t rounded(std::size_t bytes) {
    if (bytes > SIZE_MAX - kLargeGranularity) return SIZE_MAX;
    return (bytes + kGranularity - 1) / kGranularity * kGranularity;
  }

  static std::size_t piece_size(std::size_t bytes) {
    if (bytes <= kSmallLimit) return kSmallPiece;
    if (bytes < kMiddleLimit) return kMiddlePiece;
    return (bytes + kLargeGranularity - 1) / kLargeGranularity * kLargeGranularity;
  }

  FreeBlocks& free_blocks(bool small) { return small ? small_ : large_; }

  Block* take_free(bool small, std::size_t bytes, CUstream_st* stream) {
    FreeBlocks& blocks = free_blocks(small);
    Block key;
    key.stream = stream;
    key.bytes = bytes;
    const auto found = blocks.lower_bound(&key);
    if (found == blocks.end() || (*found)->stream != stream) return nullptr;
    Block* block = *found;
    blocks.erase(found);
    return block;
  }

  Block* new_piece(bool small, std::size_t bytes, CUstream_st* stream, std::size_t asked) {
    const std::size_t size = bytes == SIZE_MAX ? bytes : piece_size(bytes);
    void* data = nullptr;
    cudaError_t status = cudaErrorMemoryAllocation;
    if (size != SIZE_MAX) status = cudaMalloc(&data, size);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      for (Waiting& waiting : waiting_)
        for (const Event& event : waiting.events) event.synchronize();
      take_back_finished();
      release_cached();
      if (Block* block = take_free(small, bytes, stream)) return block;
      if (size != SIZE_MAX) status = cudaMalloc(&data, size);
    }
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t free = 0, total = 0;
      if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
      throw OutOfMemoryError(
          fmt::format("out of memory on cuda:{}: {} bytes were asked for; {} are in use (at most "
                      "{} so far), {} "
                      "cached; the device has {} of {} free",
                      device_, asked, stats_.live, stats_.peak_live, stats_.reserved - stats_.live,
                      free, total));
    }
    cuda::check(status, "cudaMalloc");
    auto* block = new Block;
    block->device = device_;
    block->stream = stream;
    block->data = static_cast<char*>(data);
    block->bytes = size;
    block->small = small;
    ++stats_.system_allocations;
    stats_.reserved += size;
    stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved);
    return block;
  }

  // What is left over becomes a free block where that is worth it.
  void split(Block* block, bool small, std::size_t bytes) {
    const std::size_t left = block->bytes - bytes;
    if (left < (small ? kGranularity : kSmallLimit + 1)) return;
    auto* rest = new Block;
    rest->device = device_;
    rest->stream = block->stream;
    rest->data = block->data + bytes;
    rest->bytes = left;
    rest->before = block;
    rest->after = block->after;
    if (rest->after) rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    rest->small = small;
    free_blocks(small).insert(rest);
  }

  void give_back(Block* block) {
    const bool small = block->small;
    block->used = false;
    if (Block* before = block->before; before && !before->used) {
      free_blocks(small).erase(before);
      merge(before, block);
      block = before;
    }
    if (Block* after = block->after; after && !after->used) {
      free_blocks(small).erase(after);
      merge(block, after);
    }
    free_blocks(small).insert(block);
  }

  void merge(Block* block, Block* after) {
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after) block->after->before = block;
    delete after;
  }

  void take_back_finished() {
    std::erase_if(waiting_, [&](const Waiting& waiting) {
      for (const Event& event : waiting.events)
        if (!event.query()) return false;
      give_back(waiting.block);
      return true;
    });
  }

  // Whole pieces only. cudaFree waits for the device.
  std::size_t release_cached() {
    if (!waiting_.empty()) take_back_finished();
    std::size_t released = 0;
    for (FreeBlocks* blocks : {&small_, &large_}) {
      for (auto it = blocks->begin(); it != blocks->end();) {
        Block* block = *it;
        if (block->before || block->after) {
          ++it;
          continue;
        }
        it = blocks->erase(it);
        cudaFree(block->data);
        released += block->bytes;
        delete block;
      }
    }
    stats_.reserved -= released;
    return released;
  }

  const int device_;
  std::mutex mutex_;
  FreeBlocks small_, large_;
  std::vector<Waiting> waiting_;
  AllocatorStats stats_;
};

DevicePool& pool_of(int device) {
  static std::mutex mutex;
  static auto& pools = *new std::map<int, DevicePool*>;  // never destroyed: tensors may outlive it
  const std::lock_guard lock(mutex);
  DevicePool*& pool = pools[device];
  if (!pool) pool = new DevicePool(device);
  return *pool;
}

}  // namespace

DeviceBlock allocate_device_memory(std::size_t bytes, Device device) {
  require_device(device, "storage");
  if (bytes == 0) return {};
  Block* block = pool_of(device.index).allocate(bytes);
  return {block->data, block};
}

void free_device_memory(const DeviceBlock& block) noexcept {
  if (!block.handle) return;
  auto* own = static_cast<Block*>(block.handle);
  pool_of(own->device).free(own);
}

void record_device_stream(const DeviceBlock& block, const Stream& stream) {
  if (!block.handle) return;
  auto* own = static_cast<Block*>(block.handle);
  pool_of(own->device).record(own, stream);
}

AllocatorStats device_memory_stats(Device device) {
  require_device(device, "device memory");
  return pool_of(device.index).stats();
}

void reset_device_memory_peak(Device device) {
  require_device(device, "device memory");
  pool_of(device.index).reset_peak();
}

std::size_t empty_device_cache() {
  std::size_t released = 0;
  for (int i = 0; i < cuda_device_count(); ++i) released += pool_of(i).empty_cache();
  return released;
}

}  // namespace lockstep
