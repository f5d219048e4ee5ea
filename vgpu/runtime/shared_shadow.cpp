#include "vgpu/runtime/shared_shadow.h"

#include "vgpu/runtime/settings.h"

namespace vgpu {

SharedShadow::Memory& SharedShadow::memory() {
  thread_local Memory memory;
  constexpr std::uint32_t kFarEnough = ~std::uint32_t{0} / 2;
  if (memory.next_epoch > kFarEnough) memory = {};
  return memory;
}

SharedShadow::SharedShadow()
    : memory_(memory()), first_epoch_(memory_.next_epoch), last_epoch_(first_epoch_) {}

SharedShadow::~SharedShadow() { memory_.next_epoch = last_epoch_ + 1; }

bool SharedShadow::ordered(const Access& earlier, const Access& now) const {
  if (!is_set(earlier) || earlier.thread == now.thread) return true;
  if (earlier.epoch < now.epoch) return true;
  return earlier.warp == now.warp && earlier.warp_epoch < now.warp_epoch;
}

std::optional<SharedShadow::Problem> SharedShadow::access(std::size_t offset, std::size_t bytes,
                                                          bool write, bool atomic,
                                                          const Moment& moment) {
  std::vector<Byte>& all = memory_.bytes;
  if (all.size() < offset + bytes) all.resize(offset + bytes);
  last_epoch_ = first_epoch_ + moment.epoch;
  const bool races = settings().checks_for(FaultKind::kSharedRace);
  const bool initialized = settings().checks_for(FaultKind::kUninitialized);
  const Access now{last_epoch_, moment.warp_epoch, static_cast<std::int16_t>(moment.thread),
                   static_cast<std::int16_t>(moment.warp), atomic};
  for (std::size_t i = offset; i < offset + bytes; ++i) {
    Byte& byte = all[i];
    const bool reads = !write || atomic;
    if (reads && initialized && !is_set(byte.write))
      return Problem{FaultKind::kUninitialized, i, -1, false};
    if (races && !ordered(byte.write, now) && !(atomic && byte.write.atomic))
      return Problem{FaultKind::kSharedRace, i, byte.write.thread, true};
    if (races && write)
      for (const Access& read : byte.reads)
        if (!ordered(read, now) && !(atomic && read.atomic))
          return Problem{FaultKind::kSharedRace, i, read.thread, false};
    if (reads) {
      Access& first = byte.reads[0];
      (ordered(first, now) ? first : byte.reads[1]) = now;
    }
    if (write) byte.write = now;
  }
  return std::nullopt;
}

}  // namespace vgpu
