#include "vgpu/runtime/device.h"

#include <cstdio>

#include "vgpu/include/vgpu/report.h"
#include "vgpu/runtime/settings.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {
namespace {

thread_local int the_current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

struct Faults {
  std::mutex mutex;
  std::vector<std::optional<KernelFault>> of_device;
};
Faults& faults() {
  static auto* the = new Faults;
  return *the;
}

// Never destroyed: a program may end with work in its streams, as with CUDA.
std::vector<std::unique_ptr<Device>>& devices() {
  static auto* all = [] {
    auto* made = new std::vector<std::unique_ptr<Device>>;
    for (int i = 0; i < settings().devices; ++i) {
      made->push_back(std::make_unique<Device>());
      made->back()->index = i;
      made->back()->default_stream = new CUstream_st(i, cudaStreamDefault);
    }
    return made;
  }();
  return *all;
}

cudaError_t error_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kOutOfBounds:
    case FaultKind::kUseAfterFree:
      return cudaErrorIllegalAddress;
    case FaultKind::kMisaligned:
      return cudaErrorMisalignedAddress;
    case FaultKind::kAssert:
      return cudaErrorAssert;
    default:
      return cudaErrorLaunchFailure;
  }
}

}  // namespace

std::recursive_mutex& host_mutex() {
  static auto* the = new std::recursive_mutex;
  return *the;
}

int current_device() { return the_current_device; }

Device* device_at(int index) {
  std::lock_guard lock(host_mutex());
  auto& all = devices();
  return index >= 0 && index < static_cast<int>(all.size())
             ? all[static_cast<std::size_t>(index)].get()
             : nullptr;
}

void break_device(int index, const KernelFault& fault) {
  std::lock_guard lock(faults().mutex);
  auto& all = faults().of_device;
  if (static_cast<int>(all.size()) <= index) all.resize(static_cast<std::size_t>(index) + 1);
  auto& mine = all[static_cast<std::size_t>(index)];
  if (mine) return;
  mine = fault;
  if (settings().log) std::fprintf(stderr, "virtual GPU, device %d: %s\n", index, fault.what());
}

cudaError_t error_of_device(int index) {
  std::lock_guard lock(faults().mutex);
  const auto& all = faults().of_device;
  if (index >= static_cast<int>(all.size()) || !all[static_cast<std::size_t>(index)])
    return cudaSuccess;
  return error_of(all[static_cast<std::size_t>(index)]->kind());
}

std::string last_fault(int device) {
  std::lock_guard lock(faults().mutex);
  const auto& all = faults().of_device;
  if (device >= static_cast<int>(all.size()) || !all[static_cast<std::size_t>(device)]) return "";
  return all[static_cast<std::size_t>(device)]->what();
}

void forget_faults() {
  std::lock_guard lock(faults().mutex);
  faults().of_device.clear();
  last_error = cudaSuccess;
}

VectorClock& host_clock() {
  static auto* the = new VectorClock;
  return *the;
}

cudaError_t fail(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace vgpu

using vgpu::fail;

cudaError_t cudaGetLastError() {
  const cudaError_t sticky = vgpu::error_of_device(vgpu::current_device());
  if (sticky != cudaSuccess) return sticky;
  const cudaError_t error = vgpu::last_error;
  vgpu::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  const cudaError_t sticky = vgpu::error_of_device(vgpu::current_device());
  return sticky != cudaSuccess ? sticky : vgpu::last_error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return fail(cudaErrorInvalidValue);
  *count = vgpu::settings().devices;
  return fail(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  *device = vgpu::current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (vgpu::device_at(device) == nullptr) return fail(cudaErrorInvalidDevice);
  vgpu::the_current_device = device;
  return cudaSuccess;
}
