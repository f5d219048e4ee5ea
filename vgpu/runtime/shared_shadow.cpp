#include "vgpu/runtime/shared_shadow.h"

#include "vgpu/runtime/settings.h"

namespace vgpu {

bool SharedShadow::ordered(const Access& earlier, const Moment& now) {
  if (earlier.thread < 0 || earlier.thread == now.thread) return true;
  if (earlier.epoch < now.epoch) return true;
  return earlier.warp == now.warp && earlier.warp_epoch < now.warp_epoch;
}

std::optional<SharedShadow::Problem> SharedShadow::access(std::size_t offset, std::size_t bytes,
                                                          bool write, bool atomic,
                                                          const Moment& moment) {
  if (bytes_.size() < offset + bytes) bytes_.resize(offset + bytes);
  const bool races = settings().checks_for(FaultKind::kSharedRace);
  const Access now{moment.epoch, moment.warp_epoch, static_cast<std::int16_t>(moment.thread),
                   static_cast<std::int16_t>(moment.warp), atomic};
  for (std::size_t i = offset; i < offset + bytes; ++i) {
    Byte& byte = bytes_[i];
    const bool reads = !write || atomic;
    if (reads && byte.write.thread < 0 && settings().checks_for(FaultKind::kUninitialized))
      return Problem{FaultKind::kUninitialized, i, -1, false};
    if (races && !ordered(byte.write, moment) && !(atomic && byte.write.atomic))
      return Problem{FaultKind::kSharedRace, i, byte.write.thread, true};
    if (races && write)
      for (const Access& read : byte.reads)
        if (!ordered(read, moment) && !(atomic && read.atomic))
          return Problem{FaultKind::kSharedRace, i, read.thread, false};
    if (reads) {
      Access& first = byte.reads[0];
      (ordered(first, moment) ? first : byte.reads[1]) = now;
    }
    if (write) byte.write = now;
  }
  return std::nullopt;
}

}  // namespace vgpu
