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

class SharedShadow {
 public:
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
    std::uint32_t epoch = 0, warp_epoch = 0;
    std::int16_t thread = -1, warp = -1;
    bool atomic = false;
  };
  struct Byte {
    Access write;
    Access reads[2];  // of two threads: whoever writes next races with one of them
  };
  static bool ordered(const Access& earlier, const Moment& now);
  std::vector<Byte> bytes_;
};

}  // namespace vgpu
