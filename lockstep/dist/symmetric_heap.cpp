#include "lockstep/dist/symmetric_heap.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

// Sizes are rounded up by at most an eighth, so that freed segments find new use.
std::size_t segment_bytes(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t step = std::max(kPage, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct SymmetricHeap::Segments {
  struct Segment {
    std::unique_ptr<MemoryFile> file;
    bool used = false;
  };

  std::mutex mutex;
  std::vector<Segment> all;                      // by number
  std::map<const char*, std::int64_t> by_start;  // number of the segment that starts there
};

SymmetricHeap::SymmetricHeap(std::function<pid_t(int)> pid_of)
    : segments_(std::make_shared<Segments>()), pid_of_(std::move(pid_of)) {}

SymmetricHeap::~SymmetricHeap() = default;

std::shared_ptr<Storage> SymmetricHeap::allocate(std::size_t bytes) {
  if (bytes == 0) return std::make_shared<Storage>(0);
  const std::size_t wanted = segment_bytes(bytes);
  std::lock_guard lock(segments_->mutex);
  auto& all = segments_->all;
  std::size_t number = 0;
  while (number < all.size() && (all[number].used || all[number].file->bytes() != wanted)) ++number;
  if (number == all.size()) {
    auto file = std::make_unique<MemoryFile>(wanted);
    all.push_back({std::move(file), false});
    segments_->by_start[static_cast<const char*>(all[number].file->data())] =
        static_cast<std::int64_t>(number);
  } else {
    std::memset(all[number].file->data(), 0, bytes);
  }
  auto storage = std::make_shared<Storage>(all[number].file->data(), bytes,
                                           [segments = segments_, number](void*) {
                                             std::lock_guard guard(segments->mutex);
                                             segments->all[number].used = false;
                                           });
  all[number].used = true;
  return storage;
}

PeerAddress SymmetricHeap::address_of(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const char*>(data);
  std::lock_guard lock(segments_->mutex);
  auto next = segments_->by_start.upper_bound(begin);
  if (next == segments_->by_start.begin()) return {};
  const auto& [start, number] = *--next;
  const MemoryFile& file = *segments_->all[static_cast<std::size_t>(number)].file;
  if (begin + bytes > start + file.bytes()) return {};
  return {static_cast<std::int32_t>(number), file.fd(), static_cast<std::int64_t>(file.bytes()),
          begin - start};
}

void* SymmetricHeap::reach(int owner, const PeerAddress& address) {
  if (static_cast<std::size_t>(owner) >= reached_.size())
    reached_.resize(static_cast<std::size_t>(owner) + 1);
  auto& segments = reached_[static_cast<std::size_t>(owner)];
  const auto number = static_cast<std::size_t>(address.segment);
  if (number >= segments.size()) segments.resize(number + 1);
  std::shared_ptr<void>& mapping = segments[number];
  if (!mapping)
    mapping = map_memory_file(pid_of_(owner), address.fd, static_cast<std::size_t>(address.bytes));
  return static_cast<char*>(mapping.get()) + address.offset;
}

}  // namespace lockstep::dist
