// What a kernel did wrong, and how it is told.
#pragma once

#include <stdexcept>
#include <string>

namespace vgpu {

enum class FaultKind {
  kOutOfBounds,  // outside every allocation, or beyond the end of one
  kUseAfterFree,
  kMisaligned,
  kUninitialized,  // bytes that nobody has written
  kSharedRace,     // two threads of a block, no barrier between them
  kBlockRace,      // two blocks of a launch
  kStreamRace,     // two operations that nothing orders
  kBarrier,        // threads wait at different places, or for ever
  kPendingCopy,    // memory of an asynchronous copy that was not waited for
  kTrap,           // trap
  kAssert,
  kEndless,  // a kernel that runs for longer than it may
  kLibrary,  // a call of NCCL and its kind that the ranks do not agree on
};

const char* fault_name(FaultKind kind);  // "out-of-bounds access", …

// Ends the kernel. The text names kernel, block and thread.
class KernelFault : public std::runtime_error {
 public:
  KernelFault(FaultKind kind, const std::string& text)
      : std::runtime_error(std::string(fault_name(kind)) + ": " + text), kind_(kind) {}
  FaultKind kind() const { return kind_; }

 private:
  FaultKind kind_;
};

}  // namespace vgpu
