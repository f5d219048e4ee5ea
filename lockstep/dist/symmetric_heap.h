// SymmetricHeap: memory of a process that the other processes of its group can map.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lockstep/dist/memory_file.h"
#include "lockstep/dist/peer_memory.h"

namespace lockstep::dist {

// Own memory: segments, one per allocation, which are kept for later allocations when freed, since
// peers have mapped them. Peers' segments are mapped when first reached and stay so.
class SymmetricHeap final : public PeerMemory {
 public:
  // `pid_of(rank)` is the process of a rank.
  explicit SymmetricHeap(std::function<pid_t(int)> pid_of);
  ~SymmetricHeap() override;

  std::shared_ptr<Storage> allocate(std::size_t bytes) override;
  PeerAddress address_of(const void* data, std::size_t bytes) override;
  void* reach(int owner, const PeerAddress& address) override;

 private:
  // Outlives the heap while storages are in use.
  struct Segments;

  std::shared_ptr<Segments> segments_;
  std::function<pid_t(int)> pid_of_;
  std::vector<std::vector<std::shared_ptr<void>>> reached_;  // by rank and segment
};

}  // namespace lockstep::dist
