// What the operations of a communicator do on their stream.
#pragma once

#include <cstdint>
#include <vector>

#include "vgpu/nccl/communicator.h"
#include "vgpu/runtime/memory_range.h"

namespace vgpu {

struct Transfer {
  enum class Kind { kCollective, kSend, kReceive };
  Kind kind = Kind::kCollective;
  CollectiveCall call;  // of a collective
  const void* from = nullptr;
  void* to = nullptr;
  MemoryRange source, target;  // of `from` and `to`
  int peer = -1;               // of a send or receive

  const char* name() const;
};

// Either one collective, or sends and receives that go on together.
void carry_out(Communicator& c, const std::vector<Transfer>& transfers, std::uint32_t id,
               const VectorClock& known);

}  // namespace vgpu
