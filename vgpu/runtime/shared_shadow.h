// What is known of each byte of a block's shared memory: whether it was written, and by whom since
// which barrier.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vgpu/runtime/fault.h"

namespace vgpu {

// One access of a thread: where it stands between barriers.
struct Moment {
  int thread;  // within the block
  int warp;
  std::uint32_t epoch;       // barriers of the block before it
  std::uint32_t warp_epoch;  // barriers of the warp before it
};

// A block's. One at a time on an OS thread, whose blocks use the same memory one after the other:
// what earlier blocks left in it is told by its epoch, which counts on from block to block.
class SharedShadow {
 public:
  SharedShadow();
  ~SharedShadow();
  SharedShadow(const SharedShadow&) = delete;
  SharedShadow& operator=(const SharedShadow&) = delete;

  struct Problem {
    FaultKind kind;
    std::size_t offset;  // of the byte
    int other_thread;    // the earlier access's; -1 where there is none
    bool other_wrote;
  };

  // Checks and notes the access; `bytes` from `offset` on.
  std::optional<Problem> access(std::size_t offset, std::size_t bytes, bool write, bool atomic,
                                const Moment& moment);

 private:
  struct Access {
    std::uint32_t epoch = 0, warp_epoch = 0;  // epoch: from 1, of all blocks
    std::int16_t thread = -1, warp = -1;
    bool atomic = false;
  };
  struct Byte {
    Access write;
    Access reads[2];  // of two threads: whoever writes next races with one of them
  };
  struct Memory {
    std::vector<Byte> bytes;
    std::uint32_t next_epoch = 1;
  };
  static Memory& memory();  // of the OS thread

  bool is_set(const Access& access) const { return access.epoch >= first_epoch_; }
  bool ordered(const Access& earlier, const Access& now) const;

  Memory& memory_;
  const std::uint32_t first_epoch_;
  std::uint32_t last_epoch_;
};

}  // namespace vgpu
