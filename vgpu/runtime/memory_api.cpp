// cudaMalloc… and cudaFree….
#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/capture.h"
#include "vgpu/runtime/counting.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/execution_lock.h"
#include "vgpu/runtime/memory_range.h"
#include "vgpu/runtime/peer.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {
namespace {

cudaError_t allocate(void** pointer, std::size_t bytes, int device) {
  if (pointer == nullptr) return fail(cudaErrorInvalidValue);
  *pointer = nullptr;
  const int owner = device == kHostDevice ? current_device() : device;
  if (device_at(owner) == nullptr) return fail(cudaErrorNoDevice);
  if (const cudaError_t error = error_of_device(owner); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  ++counting().allocations;
  Allocation* a = Arena::instance().allocate(device, bytes);
  if (a == nullptr) return fail(cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<void*>(a->begin);
  return cudaSuccess;
}

// After all that the devices have to do: what is in flight may use the memory.
cudaError_t release(Allocation* a) {
  if (refuse_in_capture(nullptr)) return fail(cudaErrorStreamCaptureUnsupported);
  ++counting().host_waits;
  for (int device = 0; device_at(device) != nullptr; ++device)
    if (a->device == kHostDevice || device == a->device) wait_for_device(device);
  ExecutionLock lock;
  Arena::instance().free(a);
  return error_of_device(a->device == kHostDevice ? current_device() : a->device);
}

}  // namespace
}  // namespace vgpu

using vgpu::fail;

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (vgpu::refuse_in_capture(nullptr)) return fail(cudaErrorStreamCaptureUnsupported);
  return vgpu::allocate(pointer, bytes, vgpu::current_device());
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  if (flags > (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
    return fail(cudaErrorInvalidValue);
  if (vgpu::refuse_in_capture(nullptr)) return fail(cudaErrorStreamCaptureUnsupported);
  return vgpu::allocate(pointer, bytes, vgpu::kHostDevice);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  vgpu::Allocation* a = vgpu::allocation_at(pointer);
  if (a == nullptr || a->device == vgpu::kHostDevice || a->foreign)
    return fail(cudaErrorInvalidValue);
  return vgpu::release(a);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  vgpu::Allocation* a = vgpu::allocation_at(pointer);
  if (a == nullptr || a->device != vgpu::kHostDevice) return fail(cudaErrorInvalidValue);
  return vgpu::release(a);
}

// The memory belongs to what comes later in the stream. A graph cannot own memory here.
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (s->is_capturing()) return fail(cudaErrorStreamCaptureUnsupported);
  const cudaError_t error = vgpu::allocate(pointer, bytes, s->device);
  if (error != cudaSuccess || bytes == 0) return error;
  vgpu::Allocation* a = vgpu::allocation_at(*pointer);
  return vgpu::enqueue(s, "cudaMallocAsync", [=](std::uint32_t id, const vgpu::VectorClock& known) {
    vgpu::ExecutionLock lock;
    vgpu::note_write({a, 0, a->bytes}, "cudaMallocAsync", id, known);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  if (pointer == nullptr) return cudaSuccess;
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (s->is_capturing()) return fail(cudaErrorStreamCaptureUnsupported);
  vgpu::Allocation* a = vgpu::allocation_at(pointer);
  if (a == nullptr || a->device == vgpu::kHostDevice || a->foreign)
    return fail(cudaErrorInvalidValue);
  return vgpu::enqueue(s, "cudaFreeAsync", [=](std::uint32_t id, const vgpu::VectorClock& known) {
    vgpu::ExecutionLock lock;
    vgpu::note_write({a, 0, a->bytes}, "cudaFreeAsync", id, known);
    vgpu::Arena::instance().free(a);
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, vgpu::current_device());
      error != cudaSuccess)
    return error;
  *total = properties.totalGlobalMem;
  *free = *total - vgpu::Arena::instance().used(vgpu::current_device());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return fail(cudaErrorInvalidValue);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const vgpu::Allocation* a = vgpu::Arena::instance().find(address);
  void* const p = const_cast<void*>(pointer);
  if (vgpu::is_registered(address, 1) ||
      (a != nullptr && !a->freed && a->device == vgpu::kHostDevice))
    *attributes = {cudaMemoryTypeHost, vgpu::current_device(), p, p};
  else if (a == nullptr || a->freed)
    *attributes = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, p};
  else
    *attributes = {cudaMemoryTypeDevice, a->device, p, nullptr};
  return cudaSuccess;
}
