#include "vgpu/runtime/library_operation.h"

#include <cstring>

#include "vgpu/runtime/counting.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/execution_lock.h"
#include "vgpu/runtime/fault.h"
#include "vgpu/runtime/peer.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {

void LibraryOperation::add(const void* pointer, std::size_t bytes,
                           std::vector<MemoryRange>& ranges) {
  if (bytes == 0) return;
  MemoryRange range;
  if (look_up(pointer, bytes, range) != cudaSuccess ||
      (range.allocation == nullptr &&
       !is_registered(reinterpret_cast<std::uintptr_t>(pointer), bytes)))
    error_ = cudaErrorInvalidValue;
  ranges.push_back(range);
}

void LibraryOperation::reads(const void* pointer, std::size_t bytes) {
  add(pointer, bytes, reads_);
}

void LibraryOperation::writes(void* pointer, std::size_t bytes) { add(pointer, bytes, writes_); }

void LibraryOperation::uses_workspace(void* pointer, std::size_t bytes) {
  add(pointer, bytes, writes_);
  workspace_ = pointer;
  workspace_bytes_ = bytes;
}

cudaError_t LibraryOperation::enqueue(cudaStream_t stream, std::function<void()> compute) {
  cudaStream_t s = resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (error_ != cudaSuccess) return fail(error_);
  if (const cudaError_t error = error_of_device(s->device); error != cudaSuccess) return error;
  count_launch(name_);
  const LibraryOperation self = *this;
  return vgpu::enqueue(
      s, name_,
      [self, device = s->device, compute = std::move(compute)](std::uint32_t id,
                                                               const VectorClock& known) {
        ExecutionLock lock;
        for (const auto* ranges : {&self.reads_, &self.writes_})
          for (const MemoryRange& range : *ranges)
            if (range.allocation != nullptr && !may_access(device, range.allocation->device))
              throw KernelFault(
                  FaultKind::kOutOfBounds,
                  self.name_ + " at " +
                      range.allocation->describe(range.allocation->begin + range.offset) +
                      ", which is no peer");
        for (const MemoryRange& range : self.reads_)
          note_read(range, self.name_.c_str(), id, known, true);
        for (const MemoryRange& range : self.writes_)
          note_write(range, self.name_.c_str(), id, known);
        if (self.workspace_bytes_ > 0) std::memset(self.workspace_, 0xff, self.workspace_bytes_);
        compute();
        for (const MemoryRange& range : self.writes_) mark_written(range);
      });
}

}  // namespace vgpu
