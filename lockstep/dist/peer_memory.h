// PeerMemory: how a rank names memory of its own to its peers, and reaches theirs.
#pragma once

#include <cstddef>
#include <memory>

#include "lockstep/core/storage.h"
#include "lockstep/dist/control_block.h"

namespace lockstep::dist {

class PeerMemory {
 public:
  virtual ~PeerMemory() = default;

  // See ProcessGroup::allocate.
  virtual std::shared_ptr<Storage> allocate(std::size_t bytes) = 0;
  // The address of [data, data+bytes) for peers; kUnreachable where they cannot reach it.
  virtual PeerAddress address_of(const void* data, std::size_t bytes) = 0;
  // Where an address of rank `owner` lies in this process. Throws CommError where it cannot be
  // reached any more. Only the thread that executes collectives calls it.
  virtual void* reach(int owner, const PeerAddress& address) = 0;
};

}  // namespace lockstep::dist
