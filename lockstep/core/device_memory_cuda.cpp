// The caching allocator of device memory, and graphs' own memory.
#include "lockstep/core/device_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/core/block_arena.h"
#include "lockstep/core/capture_cuda.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/error.h"
#include "lockstep/core/error_cuda.h"
#include "lockstep/core/graph_memory.h"

namespace lockstep {
namespace {

std::atomic<bool> g_caching{true};

// The arena of the graph that the thread captures.
thread_local BlockArena* t_graph_arena = nullptr;

class DevicePool {
 public:
  explicit DevicePool(int device) : device_(device), shared_(device) {}

  MemoryBlock* allocate(std::size_t asked) {
    const DeviceGuard guard(cuda_device(device_));
    CUstream_st* stream = current_native_stream(cuda_device(device_));
    const bool graph = t_graph_arena && t_graph_arena->device() == device_;
    // A replay would write memory that others have by then.
    if (!graph && cuda::is_captured(stream))
      throw Error(fmt::format(
          "storage: memory was asked for while the current stream of cuda:{} is captured, but only "
          "the thread inside Graph::capture() can have any",
          device_));
    BlockArena& arena = graph ? *t_graph_arena : shared_;
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty() && !cuda::thread_captures()) take_back_finished();
    const bool cached = graph || g_caching;
    const std::size_t bytes = cached ? BlockArena::rounded(asked) : asked;
    MemoryBlock* block = cached ? arena.take(bytes, stream) : nullptr;
    if (!block)
      block = take_from_driver(arena, cached ? BlockArena::piece_size(bytes) : asked, bytes, stream,
                               asked);
    ++stats_.allocations;
    stats_.live += block->bytes;
    stats_.peak_live = std::max(stats_.peak_live, stats_.live);
    return block;
  }

  void free(MemoryBlock* block) noexcept {
    const std::lock_guard lock(mutex_);
    stats_.live -= block->bytes;
    if (block->other_streams.empty()) return give_back(block);
    try {
      // A graph's block that several of its streams use is not used again within the capture.
      if (block->arena != &shared_ && !is_ended(block->arena)) {
        held_[block->arena].push_back(block);
        return;
      }
      Waiting waiting{block, std::exchange(block->other_streams, {}), {}};
      record_events(waiting);
      waiting_.push_back(std::move(waiting));
    } catch (...) {
      // The device is beyond use: nothing will read the block.
      give_back(block);
    }
  }

  void record(MemoryBlock* block, const Stream& stream) {
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
    if (!waiting_.empty()) take_back_finished();
    return release(shared_);
  }

  void end(BlockArena* arena) {
    const DeviceGuard guard(cuda_device(device_));
    const std::lock_guard lock(mutex_);
    ended_.push_back(arena);
    // cudaFree waits for the device: no replay is left that uses them.
    for (MemoryBlock* block : held_[arena]) arena->give_back(block);
    held_.erase(arena);
    release(*arena);
    forget_if_empty(arena);
  }

 private:
  // A freed block that other streams' work may still use.
  struct Waiting {
    MemoryBlock* block;
    std::vector<Stream> streams;  // to be recorded once they are not captured
    std::vector<Event> events;
  };

  MemoryBlock* take_from_driver(BlockArena& arena, std::size_t size, std::size_t bytes,
                                CUstream_st* stream, std::size_t asked) {
    const cuda::RelaxedCapture relaxed;
    void* data = nullptr;
    cudaError_t status = size == SIZE_MAX ? cudaErrorMemoryAllocation : cudaMalloc(&data, size);
    if (status == cudaErrorMemoryAllocation && !cuda::thread_captures()) {
      cudaGetLastError();
      for (Waiting& waiting : waiting_)
        for (const Event& event : waiting.events) event.synchronize();
      take_back_finished();
      release(shared_);
      if (MemoryBlock* block = arena.take(bytes, stream)) return block;
      if (size != SIZE_MAX) status = cudaMalloc(&data, size);
    }
    if (status == cudaErrorMemoryAllocation) throw_out_of_memory(asked);
    cuda::check(status, "cudaMalloc");
    ++stats_.system_allocations;
    stats_.reserved += size;
    stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved);
    return arena.take_from_new_piece(static_cast<char*>(data), size, bytes, stream);
  }

  [[noreturn]] void throw_out_of_memory(std::size_t asked) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
    throw OutOfMemoryError(fmt::format(
        "out of memory on cuda:{}: {} bytes were asked for; {} are in use (at most {} so far), {} "
        "cached; the device has {} of {} free",
        device_, asked, stats_.live, stats_.peak_live, stats_.reserved - stats_.live, free, total));
  }

  void give_back(MemoryBlock* block) {
    BlockArena* arena = block->arena;
    arena->give_back(block);
    if (arena == &shared_) {
      if (!g_caching) release(shared_);
      return;
    }
    if (!is_ended(arena)) return;
    release(*arena);
    forget_if_empty(arena);
  }

  // True where all are.
  static bool record_events(Waiting& waiting) {
    while (!waiting.streams.empty()) {
      Stream& stream = waiting.streams.back();
      if (cuda::is_captured(stream.native())) return false;
      waiting.events.push_back(stream.record());
      waiting.streams.pop_back();
    }
    return true;
  }

  static bool is_done(Waiting& waiting) {
    return record_events(waiting) && std::all_of(waiting.events.begin(), waiting.events.end(),
                                                 [](const Event& event) { return event.query(); });
  }

  void take_back_finished() {
    for (std::size_t i = 0; i < waiting_.size();) {
      if (!is_done(waiting_[i])) {
        ++i;
        continue;
      }
      MemoryBlock* block = waiting_[i].block;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      give_back(block);
    }
  }

  // Whole pieces only. cudaFree waits for the device.
  std::size_t release(BlockArena& arena) {
    const cuda::RelaxedCapture relaxed;
    const std::size_t bytes = arena.drop_free_pieces([](char* piece) { cudaFree(piece); });
    stats_.reserved -= bytes;
    return bytes;
  }

  bool is_ended(const BlockArena* arena) const {
    return std::find(ended_.begin(), ended_.end(), arena) != ended_.end();
  }

  void forget_if_empty(BlockArena* arena) {
    if (arena->pieces() > 0) return;
    std::erase(ended_, arena);
    delete arena;
  }

  const int device_;
  std::mutex mutex_;
  BlockArena shared_;
  std::vector<Waiting> waiting_;
  std::map<BlockArena*, std::vector<MemoryBlock*>> held_;  // until their graph is gone
  std::vector<BlockArena*> ended_;  // of graphs that are gone, with memory in use
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

GraphMemory::GraphMemory(Device device) : arena_(new BlockArena(device.index)) {}

GraphMemory::~GraphMemory() { pool_of(arena_->device()).end(arena_); }

void GraphMemory::begin() {
  if (t_graph_arena) throw Error("graph: the thread captures a graph already");
  t_graph_arena = arena_;
}

void GraphMemory::end() noexcept { t_graph_arena = nullptr; }

DeviceBlock allocate_device_memory(std::size_t bytes, Device device) {
  require_device(device, "storage");
  if (bytes == 0) return {};
  MemoryBlock* block = pool_of(device.index).allocate(bytes);
  return {block->data, block};
}

void free_device_memory(const DeviceBlock& block) noexcept {
  if (!block.handle) return;
  auto* own = static_cast<MemoryBlock*>(block.handle);
  pool_of(own->arena->device()).free(own);
}

void record_device_stream(const DeviceBlock& block, const Stream& stream) {
  if (!block.handle) return;
  auto* own = static_cast<MemoryBlock*>(block.handle);
  pool_of(own->arena->device()).record(own, stream);
}

AllocatorStats device_memory_stats(Device device) {
  require_device(device, "device memory");
  return pool_of(device.index).stats();
}

void reset_device_memory_peak(Device device) {
  require_device(device, "device memory");
  pool_of(device.index).reset_peak();
}

void set_device_memory_caching(bool on) { g_caching = on; }

std::size_t empty_device_cache() {
  cuda::refuse_in_capture("device memory: empty_device_cache");
  std::size_t released = 0;
  for (int i = 0; i < cuda_device_count(); ++i) released += pool_of(i).empty_cache();
  return released;
}

}  // namespace lockstep
