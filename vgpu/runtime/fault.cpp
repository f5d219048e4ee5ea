#include "vgpu/runtime/fault.h"

namespace vgpu {

const char* fault_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kOutOfBounds:
      return "out-of-bounds access";
    case FaultKind::kUseAfterFree:
      return "use after free";
    case FaultKind::kMisaligned:
      return "misaligned access";
    case FaultKind::kUninitialized:
      return "read of uninitialized memory";
    case FaultKind::kSharedRace:
      return "race within a block";
    case FaultKind::kBlockRace:
      return "race between blocks";
    case FaultKind::kStreamRace:
      return "race between operations";
    case FaultKind::kBarrier:
      return "barrier";
    case FaultKind::kPendingCopy:
      return "pending asynchronous copy";
    case FaultKind::kTrap:
      return "trap";
    case FaultKind::kAssert:
      return "assertion";
    case FaultKind::kEndless:
      return "endless kernel";
    case FaultKind::kLibrary:
      return "wrong library call";
  }
  return "fault";
}

}  // namespace vgpu
