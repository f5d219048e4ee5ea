#include "vgpu/include/vgpu/launch.h"

#include <cstdint>
#include <map>

#include "vgpu/runtime/access.h"
#include "vgpu/runtime/counting.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/function_name.h"
#include "vgpu/runtime/kernel.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {
namespace {

constexpr std::size_t kSharedByDefault = 48 << 10;
constexpr int kMostShared = 227 << 10;

// Under host_mutex().
std::map<const void*, int>& shared_limits() {
  static auto* the = new std::map<const void*, int>;
  return *the;
}

bool is_possible(const dim3& grid, const dim3& block) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 2147483647u && grid.y <= 65535u &&
         grid.z <= 65535u && threads > 0 && threads <= 1024 && block.x <= 1024 && block.y <= 1024 &&
         block.z <= 64;
}

}  // namespace

cudaError_t set_dynamic_shared_limit(const void* kernel, int bytes) {
  if (bytes < 0 || bytes > kMostShared) return fail(cudaErrorInvalidValue);
  std::lock_guard lock(host_mutex());
  shared_limits()[kernel] = bytes;
  return cudaSuccess;
}

cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                          std::shared_ptr<const KernelCall> call, unsigned launch_bound) {
  cudaStream_t stream = resolve(config.stream);
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = error_of_device(stream->device); error != cudaSuccess) return error;
  if (!is_possible(config.gridDim, config.blockDim)) return fail(cudaErrorInvalidConfiguration);
  if (config.blockDim.x * config.blockDim.y * config.blockDim.z > launch_bound)
    return fail(cudaErrorInvalidConfiguration);
  std::lock_guard lock(host_mutex());
  const auto limit = shared_limits().find(kernel);
  if (config.dynamicSmemBytes >
      (limit == shared_limits().end() ? kSharedByDefault : static_cast<std::size_t>(limit->second)))
    return fail(cudaErrorInvalidValue);
  KernelLaunch launch{
      function_name(kernel), config.gridDim, config.blockDim, config.dynamicSmemBytes,
      std::move(call),       stream->device, kernel};
  const std::string name = launch.name;
  count_launch(name);
  const cudaError_t error = enqueue(
      stream, name, [launch = std::move(launch)](std::uint32_t id, const VectorClock& known) {
        if (auto fault = run_kernel(launch, id, known)) throw *fault;
      });
  return error == cudaSuccess ? error : fail(error);
}

}  // namespace vgpu
