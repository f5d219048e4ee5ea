// Another way to run kernels than on the virtual GPU's own threads: an interpreter of what a
// compiler made of them, say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vgpu/vector_types.h"

namespace vgpu {

// A kernel with its own copy of its arguments.
class KernelCall {
 public:
  virtual ~KernelCall() = default;
  virtual void run_thread() const = 0;
  // Their bytes, in order.
  virtual std::vector<std::span<const std::byte>> arguments() const = 0;
};

// The allocation that a pointer points into, if it is one of the virtual GPU's.
struct DeviceMemory {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* written = nullptr;  // per byte: 0 as long as nobody has written it
};

struct ExecutorLaunch {
  std::string symbol;  // the kernel's, mangled
  dim3 grid, block;
  std::size_t dynamic_shared = 0;                     // bytes
  std::vector<std::span<const std::byte>> arguments;  // pointers in them are the virtual GPU's
  std::optional<DeviceMemory> (*memory_at)(const void* pointer) = nullptr;
};

// Runs one kernel; an exception is the kernel's fault.
using KernelExecutor = std::function<void(const ExecutorLaunch&)>;

// The library that LOCKSTEP_VGPU_EXECUTOR names has this function. What it returns runs all
// kernels, one at a time; the virtual GPU's own checks within kernels are then not made.
inline constexpr const char* kExecutorFactory = "make_kernel_executor";
using KernelExecutorFactory = KernelExecutor* (*)(std::uint64_t seed);  // never deleted

}  // namespace vgpu
