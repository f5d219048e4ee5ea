#include "lockstep/core/device_fault.h"

#include <cuda_runtime.h>
#include <fmt/core.h>

#include <atomic>

#include "lockstep/core/capture_cuda.h"
#include "lockstep/core/error.h"
#include "lockstep/core/error_cuda.h"

namespace lockstep::cuda {
namespace {

std::atomic<DeviceFault*> g_fault{nullptr};  // null until a kernel may need it

DeviceFault* make_fault() {
  const RelaxedCapture relaxed;
  void* data = nullptr;
  check(cudaHostAlloc(&data, sizeof(DeviceFault), cudaHostAllocPortable | cudaHostAllocMapped),
        "allocation of pinned memory");
  return new (data) DeviceFault{};
}

}  // namespace

DeviceFault* device_fault() {
  static DeviceFault* const fault = [] {
    DeviceFault* made = make_fault();
    g_fault = made;
    return made;
  }();
  return fault;
}

void throw_device_fault() {
  DeviceFault* const fault = g_fault;
  if (!fault) return;
  const std::atomic_ref<unsigned> state(fault->state);
  if (state.load(std::memory_order_acquire) != 2) return;
  const auto& v = fault->values;
  const std::string message = fmt::format(fmt::runtime(fault->text), v[0], v[1], v[2], v[3], v[4]);
  state.store(0, std::memory_order_release);
  throw Error(message);
}

}  // namespace lockstep::cuda
