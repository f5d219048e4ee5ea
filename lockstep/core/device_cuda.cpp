// Devices of a CUDA build.
#include <fmt/core.h>

#include "lockstep/core/device.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/error.h"
#include "lockstep/core/error_cuda.h"
#include "lockstep/core/launch_cuda.h"
#include "lockstep/core/log.h"

namespace lockstep {
namespace cuda {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess) cudaGetLastError();
  throw Error(fmt::format("{}: CUDA says {} ({}) on device cuda:{}", call, cudaGetErrorName(status),
                          cudaGetErrorString(status), device));
}

void check_launch(cudaError_t status, const char* kernel) {
  if (status != cudaSuccess) [[unlikely]]
    check(status, fmt::format("launch of kernel {}", kernel).c_str());
}

}  // namespace cuda

int cuda_device_count() {
  static const int count = [] {
    int found = 0;
    const cudaError_t status = cudaGetDeviceCount(&found);
    if (status == cudaSuccess && found > 0) return found < 128 ? found : 127;
    cudaGetLastError();
    log(LogLevel::kWarning,
        fmt::format("no CUDA device: {}; the CPU does the work",
                    status == cudaSuccess ? "the driver finds none" : cudaGetErrorString(status)));
    return 0;
  }();
  return count;
}

Device current_cuda_device() {
  int index = 0;
  cuda::check(cudaGetDevice(&index), "cudaGetDevice");
  return cuda_device(index);
}

DeviceGuard::DeviceGuard(Device device) {
  if (device.is_cpu()) return;
  require_device(device, "device guard");
  int now = 0;
  cuda::check(cudaGetDevice(&now), "cudaGetDevice");
  if (now == device.index) return;
  cuda::check(cudaSetDevice(device.index), "cudaSetDevice");
  former_ = now;
}

DeviceGuard::~DeviceGuard() {
  if (former_ >= 0) cudaSetDevice(former_);
}

}  // namespace lockstep
