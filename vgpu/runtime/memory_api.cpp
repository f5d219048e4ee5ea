// cudaMalloc…, cudaMemcpy…, cudaMemset….
#include <algorithm>
#include <cstring>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/allocation.h"
#include "vgpu/runtime/counting.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/global_check.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {
namespace {

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The device of memory that starts at the pointer; an allocation that is alive, else null.
Allocation* allocation_at(const void* pointer) {
  Allocation* a = Arena::instance().find(address_of(pointer));
  return a != nullptr && a->begin == address_of(pointer) && !a->freed ? a : nullptr;
}

cudaError_t allocate(void** pointer, std::size_t bytes, int device) {
  if (pointer == nullptr) return fail(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (device != kHostDevice && device_at(device) == nullptr) return fail(cudaErrorNoDevice);
  if (bytes == 0) return cudaSuccess;
  ++counting().allocations;
  Allocation* a = Arena::instance().allocate(device, bytes);
  if (a == nullptr) return fail(cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<void*>(a->begin);
  return cudaSuccess;
}

// Part of an operation at one end: a range of device or pinned memory, or plain host memory.
struct End {
  Allocation* allocation = nullptr;  // null: plain host memory
  std::size_t offset = 0;
};

// Whether the range may be used at all; what may not is the caller's mistake.
cudaError_t look_up(const void* pointer, std::size_t bytes, End& end) {
  const std::uintptr_t address = address_of(pointer);
  if (!Arena::instance().holds(address)) return cudaSuccess;
  Allocation* a = Arena::instance().find(address);
  if (a == nullptr || a->freed) return cudaErrorInvalidValue;
  end = {a, address - a->begin};
  return end.offset <= a->bytes && bytes <= a->bytes - end.offset ? cudaSuccess
                                                                  : cudaErrorInvalidValue;
}

bool is_device(const End& end) {
  return end.allocation != nullptr && end.allocation->device != kHostDevice;
}

bool fits(cudaMemcpyKind kind, const End& to, const End& from) {
  switch (kind) {
    case cudaMemcpyHostToHost: return !is_device(to) && !is_device(from);
    case cudaMemcpyHostToDevice: return is_device(to) && !is_device(from);
    case cudaMemcpyDeviceToHost: return !is_device(to) && is_device(from);
    case cudaMemcpyDeviceToDevice: return is_device(to) && is_device(from);
    case cudaMemcpyDefault: return true;
  }
  return false;
}

// At the time of the operation: the memory may have been freed meanwhile.
void note(const End& end, std::size_t bytes, bool write, const char* name, std::uint32_t id,
          const VectorClock& known) {
  if (end.allocation == nullptr) return;
  if (end.allocation->freed)
    throw KernelFault(FaultKind::kUseAfterFree,
                      std::string(name) + " at " +
                          end.allocation->describe(end.allocation->begin + end.offset));
  const std::string race =
      note_operation(*end.allocation, end.offset, bytes, write, false, id, known);
  if (!race.empty()) throw KernelFault(FaultKind::kStreamRace, race);
}

void carry_over_written(const End& to, const End& from, std::size_t bytes) {
  if (to.allocation == nullptr) return;
  const auto at = to.allocation->written.begin() + static_cast<std::ptrdiff_t>(to.offset);
  if (from.allocation == nullptr)
    std::fill_n(at, bytes, 1);
  else
    std::copy_n(from.allocation->written.begin() + static_cast<std::ptrdiff_t>(from.offset), bytes,
                at);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  cudaStream_t s = resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  End target, source;
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return fail(cudaErrorInvalidValue);
  if (const cudaError_t error = look_up(to, bytes, target); error != cudaSuccess) return fail(error);
  if (const cudaError_t error = look_up(from, bytes, source); error != cudaSuccess)
    return fail(error);
  if (!fits(kind, target, source)) return fail(cudaErrorInvalidMemcpyDirection);
  ++counting().copies;
  const auto work = [=](std::uint32_t id, const VectorClock& known) {
    note(source, bytes, false, "memcpy", id, known);
    note(target, bytes, true, "memcpy", id, known);
    std::memmove(to, from, bytes);
    carry_over_written(target, source, bytes);
  };
  enqueue(s, "memcpy", work);
  return error_of_device(s->device);
}

cudaError_t set(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  cudaStream_t s = resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  End target;
  if (const cudaError_t error = look_up(to, bytes, target); error != cudaSuccess) return fail(error);
  if (target.allocation == nullptr) return fail(cudaErrorInvalidValue);
  ++counting().copies;
  enqueue(s, "memset", [=](std::uint32_t id, const VectorClock& known) {
    note(target, bytes, true, "memset", id, known);
    std::memset(to, value, bytes);
    carry_over_written(target, {}, bytes);
  });
  return error_of_device(s->device);
}

cudaError_t finish(cudaError_t started) {
  if (started != cudaSuccess) return started;
  ++counting().host_waits;
  cudaStream_t s = resolve(nullptr);
  wait_for_stream(s);
  return error_of_device(s->device);
}

}  // namespace
}  // namespace vgpu

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return vgpu::allocate(pointer, bytes, vgpu::current_device());
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return vgpu::allocate(pointer, bytes, vgpu::kHostDevice);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

// Waits for the device, as CUDA does.
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  vgpu::Allocation* a = vgpu::allocation_at(pointer);
  if (a == nullptr || a->device == vgpu::kHostDevice) return vgpu::fail(cudaErrorInvalidValue);
  const cudaError_t error = cudaDeviceSynchronize();
  vgpu::Arena::instance().free(a);
  return error;
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  vgpu::Allocation* a = vgpu::allocation_at(pointer);
  if (a == nullptr || a->device != vgpu::kHostDevice) return vgpu::fail(cudaErrorInvalidValue);
  const cudaError_t error = cudaDeviceSynchronize();
  vgpu::Arena::instance().free(a);
  return error;
}

// The memory belongs to what comes later in the stream.
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return vgpu::fail(cudaErrorInvalidResourceHandle);
  const cudaError_t error = vgpu::allocate(pointer, bytes, s->device);
  if (error != cudaSuccess || bytes == 0) return error;
  vgpu::Allocation* a = vgpu::allocation_at(*pointer);
  vgpu::enqueue(s, "cudaMallocAsync", [=](std::uint32_t id, const vgpu::VectorClock& known) {
    vgpu::note({a, 0}, bytes, true, "cudaMallocAsync", id, known);
  });
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  if (pointer == nullptr) return cudaSuccess;
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return vgpu::fail(cudaErrorInvalidResourceHandle);
  vgpu::Allocation* a = vgpu::allocation_at(pointer);
  if (a == nullptr || a->device == vgpu::kHostDevice) return vgpu::fail(cudaErrorInvalidValue);
  vgpu::enqueue(s, "cudaFreeAsync", [=](std::uint32_t id, const vgpu::VectorClock& known) {
    vgpu::note({a, 0}, a->bytes, true, "cudaFreeAsync", id, known);
    vgpu::Arena::instance().free(a);
  });
  return cudaSuccess;
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
  if (attributes == nullptr) return vgpu::fail(cudaErrorInvalidValue);
  const vgpu::Allocation* a = vgpu::Arena::instance().find(vgpu::address_of(pointer));
  void* const p = const_cast<void*>(pointer);
  if (a == nullptr || a->freed)
    *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, p};
  else if (a->device == vgpu::kHostDevice)
    *attributes = {cudaMemoryTypeHost, vgpu::current_device(), p, p};
  else
    *attributes = {cudaMemoryTypeDevice, a->device, p, nullptr};
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return vgpu::copy(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return vgpu::finish(vgpu::copy(to, from, bytes, kind, nullptr));
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return vgpu::set(to, value, bytes, stream);
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return vgpu::finish(vgpu::set(to, value, bytes, nullptr));
}
