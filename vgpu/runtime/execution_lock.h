// One block runs at a time in the process: kernels of different streams take turns, block by block.
#pragma once

namespace vgpu {

// Held while a block runs.
class ExecutionLock {
 public:
  ExecutionLock();
  ~ExecutionLock();
  ExecutionLock(const ExecutionLock&) = delete;
  ExecutionLock& operator=(const ExecutionLock&) = delete;
};

// By a thread that polls for what another stream, or another process, is to do.
void let_other_streams_run();

}  // namespace vgpu
