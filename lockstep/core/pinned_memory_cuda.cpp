// The cache of pinned host memory: blocks of powers of two.
#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "lockstep/core/capture_cuda.h"
#include "lockstep/core/error_cuda.h"
#include "lockstep/core/pinned_memory.h"

namespace lockstep::detail {
namespace {

constexpr std::size_t kLeast = 512;

struct Block {
  std::size_t bytes;
  std::vector<Event> users;  // copies that may not be done
};

class PinnedPool {
 public:
  static PinnedPool& instance() {
    static auto& pool = *new PinnedPool;  // never destroyed: tensors may outlive it
    return pool;
  }

  void* allocate(std::size_t asked) {
    const std::size_t bytes = std::bit_ceil(asked < kLeast ? kLeast : asked);
    const cuda::RelaxedCapture relaxed;
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[bytes];
    for (std::size_t i = 0; i < free.size(); ++i) {
      void* data = free[i];
      if (!done(blocks_.at(data))) continue;
      free[i] = free.back();
      free.pop_back();
      return data;
    }
    void* data = nullptr;
    cuda::check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "allocation of pinned memory");
    blocks_[data] = {bytes, {}};
    return data;
  }

  void free(void* data) noexcept {
    const std::lock_guard lock(mutex_);
    free_[blocks_.at(data).bytes].push_back(data);
  }

  void record(const void* data, const Stream& stream) {
    if (cuda::is_captured(stream.native())) return;  // the graph's user keeps it
    const std::lock_guard lock(mutex_);
    if (Block* block = find(data)) {
      std::erase_if(block->users, [](const Event& event) { return event.query(); });
      block->users.push_back(Stream(stream).record());
    }
  }

  bool holds(const void* data) {
    const std::lock_guard lock(mutex_);
    return find(data) != nullptr;
  }

 private:
  static bool done(Block& block) {
    std::erase_if(block.users, [](const Event& event) { return event.query(); });
    return block.users.empty();
  }

  Block* find(const void* data) {
    auto it = blocks_.upper_bound(const_cast<void*>(data));
    if (it == blocks_.begin()) return nullptr;
    --it;
    const auto* start = static_cast<const char*>(it->first);
    return static_cast<const char*>(data) < start + it->second.bytes ? &it->second : nullptr;
  }

  std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::map<std::size_t, std::vector<void*>> free_;
};

}  // namespace

void* allocate_pinned(std::size_t bytes) { return PinnedPool::instance().allocate(bytes); }
void free_pinned(void* data) noexcept { PinnedPool::instance().free(data); }
bool is_pinned_memory(const void* data) { return PinnedPool::instance().holds(data); }
void record_pinned_stream(const void* data, const Stream& stream) {
  PinnedPool::instance().record(data, stream);
}

}  // namespace lockstep::detail
