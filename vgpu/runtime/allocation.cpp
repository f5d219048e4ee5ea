#include "vgpu/runtime/allocation.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>

#include "vgpu/runtime/settings.h"

namespace vgpu {
namespace {

void* reserve(std::size_t bytes, int protection) {
  void* data = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::runtime_error("the virtual GPU cannot reserve addresses");
  return data;
}

}  // namespace

std::string Allocation::describe(std::uintptr_t address) const {
  const bool inside = address - begin < bytes;
  return (inside ? "byte " + std::to_string(address - begin)
                 : std::to_string(address - begin - bytes) + " bytes after the end") +
         " of allocation " + std::to_string(serial) + " (" + std::to_string(bytes) + " bytes " +
         (device == kHostDevice ? "of pinned memory" : "on device " + std::to_string(device)) + ")";
}

struct Arena::State {
  mutable std::mutex mutex;
  std::size_t next = 0;  // offset of the first address never used
  std::uint64_t serial = 0;
  std::map<int, std::size_t> used;
  std::atomic<Allocation*>* pages = nullptr;
};

Arena& Arena::instance() {
  static auto* the = new Arena;
  return *the;
}

Arena::Arena() : state_(new State) {
  begin_ = reinterpret_cast<std::uintptr_t>(reserve(kBytes, PROT_NONE));
  // Zero pages, taken from the system as they are touched: null pointers.
  state_->pages = static_cast<std::atomic<Allocation*>*>(
      reserve(kBytes / kPage * sizeof(std::atomic<Allocation*>), PROT_READ | PROT_WRITE));
  // A file in memory with no name, so that other processes can map what they are handed.
  file_ = memfd_create("vgpu-memory", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kBytes)) != 0)
    throw std::runtime_error("the virtual GPU cannot make its memory");
}

Allocation* Arena::allocate(int device, std::size_t bytes) {
  std::lock_guard lock(state_->mutex);
  std::size_t& used = state_->used[device];
  if (device != kHostDevice && (bytes > settings().memory || used > settings().memory - bytes))
    return nullptr;
  Allocation* const allocation = place(file_, state_->next, device, bytes);
  if (allocation != nullptr) used += bytes;
  return allocation;
}

Allocation* Arena::open(int file, std::size_t offset, int device, std::size_t bytes) {
  std::lock_guard lock(state_->mutex);
  Allocation* const allocation = place(file, offset, device, bytes);
  if (allocation == nullptr) return nullptr;
  allocation->foreign = true;
  std::fill_n(allocation->written.begin(), bytes, std::uint8_t{1});
  return allocation;
}

// At the next free addresses. Under the mutex.
Allocation* Arena::place(int file, std::size_t offset, int device, std::size_t bytes) {
  const std::size_t span = (bytes + kPage - 1) / kPage * kPage;
  if (span > kBytes || state_->next > kBytes - span - kPage) return nullptr;
  void* const at = reinterpret_cast<void*>(begin_ + state_->next);
  if (mmap(at, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
           static_cast<off_t>(offset)) == MAP_FAILED)
    return nullptr;
  auto* allocation = new Allocation;  // never deleted: it explains what happens to its addresses
  allocation->begin = begin_ + state_->next;
  allocation->bytes = bytes;
  allocation->device = device;
  allocation->serial = ++state_->serial;
  allocation->written = ZeroedArray<std::uint8_t>(bytes);
  if (device == kHostDevice) std::fill_n(allocation->written.begin(), bytes, std::uint8_t{1});
  allocation->granules = ZeroedArray<GranuleUse>((bytes + kGranule - 1) / kGranule);
  for (std::size_t page = 0; page < span / kPage; ++page)
    state_->pages[state_->next / kPage + page].store(allocation, std::memory_order_release);
  state_->next += span + kPage;
  return allocation;
}

void Arena::free(Allocation* allocation) {
  std::lock_guard lock(state_->mutex);
  allocation->freed = true;
  const std::size_t span = (allocation->bytes + kPage - 1) / kPage * kPage;
  mmap(reinterpret_cast<void*>(allocation->begin), span, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (!allocation->foreign) {
    state_->used[allocation->device] -= allocation->bytes;
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(offset(*allocation)), static_cast<off_t>(span));
  }
  allocation->written = {};
  allocation->granules = {};
  allocation->writes = {};
  allocation->reads = {};
}

Allocation* Arena::find(std::uintptr_t address) const {
  if (!holds(address)) return nullptr;
  return state_->pages[(address - begin_) / kPage].load(std::memory_order_acquire);
}

std::size_t Arena::used(int device) const {
  std::lock_guard lock(state_->mutex);
  const auto at = state_->used.find(device);
  return at == state_->used.end() ? 0 : at->second;
}

}  // namespace vgpu
