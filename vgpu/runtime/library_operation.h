// An operation of a library's stand-in: like a kernel it runs on a stream, and what it reads and
// writes is checked and noted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/memory_range.h"

namespace vgpu {

class LibraryOperation {
 public:
  explicit LibraryOperation(std::string name) : name_(std::move(name)) {}

  // The bytes from the pointer on; they must lie in memory that devices can reach.
  void reads(const void* pointer, std::size_t bytes);
  void writes(void* pointer, std::size_t bytes);
  // Written with nonsense: nobody may count on what is there.
  void uses_workspace(void* pointer, std::size_t bytes);

  // cudaErrorInvalidValue if one of the ranges is not such memory. Counts as a launch.
  cudaError_t enqueue(cudaStream_t stream, std::function<void()> compute);

 private:
  void add(const void* pointer, std::size_t bytes, std::vector<MemoryRange>& ranges);
  std::string name_;
  std::vector<MemoryRange> reads_, writes_;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace vgpu
