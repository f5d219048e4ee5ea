// cudaMemcpy… and cudaMemset….
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

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

// `rows` rows of `width` bytes, `pitch` bytes apart.
struct Rectangle {
  std::size_t width = 0, rows = 1, pitch = 0;
  std::size_t extent() const { return rows == 0 ? 0 : (rows - 1) * pitch + width; }
  bool is_empty() const { return width == 0 || rows == 0; }
};

bool fits(cudaMemcpyKind kind, const MemoryRange& to, const MemoryRange& from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to.is_device() && !from.is_device();
    case cudaMemcpyHostToDevice:
      return to.is_device() && !from.is_device();
    case cudaMemcpyDeviceToHost:
      return !to.is_device() && from.is_device();
    case cudaMemcpyDeviceToDevice:
      return to.is_device() && from.is_device();
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

MemoryRange row(const MemoryRange& range, const Rectangle& shape, std::size_t i) {
  return {range.allocation, range.offset + i * shape.pitch, shape.width};
}

bool is_pageable(const MemoryRange& range, const void* pointer) {
  return range.allocation == nullptr &&
         !is_registered(reinterpret_cast<std::uintptr_t>(pointer), range.bytes);
}

void carry_out(void* to, const MemoryRange& target, const Rectangle& into, const void* from,
               const MemoryRange& source, const Rectangle& out, std::uint32_t id,
               const VectorClock& known) {
  ExecutionLock lock;
  for (std::size_t i = 0; i < into.rows; ++i) {
    note_read(row(source, out, i), "memcpy", id, known);
    note_write(row(target, into, i), "memcpy", id, known);
    std::memmove(static_cast<char*>(to) + i * into.pitch,
                 static_cast<const char*>(from) + i * out.pitch, into.width);
    mark_copied(row(target, into, i), row(source, out, i));
  }
}

cudaError_t copy(void* to, const Rectangle& into, const void* from, const Rectangle& out,
                 cudaMemcpyKind kind, cudaStream_t stream, bool wait) {
  cudaStream_t s = resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (wait && refuse_in_capture(s)) return fail(cudaErrorStreamCaptureUnsupported);
  if (into.is_empty()) return error_of_device(s->device);
  if (to == nullptr || from == nullptr) return fail(cudaErrorInvalidValue);
  if (into.pitch < into.width || out.pitch < out.width) return fail(cudaErrorInvalidPitchValue);
  MemoryRange target, source;
  if (const cudaError_t error = look_up(to, into.extent(), target); error != cudaSuccess)
    return fail(error);
  if (const cudaError_t error = look_up(from, out.extent(), source); error != cudaSuccess)
    return fail(error);
  if (!fits(kind, target, source)) return fail(cudaErrorInvalidMemcpyDirection);
  counting().copies += 1;
  counting().bytes_copied += into.width * into.rows;
  cudaError_t error;
  if (target.is_device() && is_pageable(source, from) && !s->is_capturing()) {
    // As CUDA: the host may change its memory when the call returns.
    auto staged = std::make_shared<std::vector<char>>(
        static_cast<const char*>(from), static_cast<const char*>(from) + out.extent());
    error = enqueue(s, "memcpy", [=](std::uint32_t id, const VectorClock& known) {
      carry_out(to, target, into, staged->data(), source, out, id, known);
    });
  } else {
    error = enqueue(s, "memcpy", [=](std::uint32_t id, const VectorClock& known) {
      carry_out(to, target, into, from, source, out, id, known);
    });
    // As CUDA: a copy to memory that is not pinned is over when the call returns.
    wait = wait || (source.is_device() && is_pageable(target, to) && !s->is_capturing());
  }
  if (error != cudaSuccess) return fail(error);
  // As CUDA: the host does not wait for a copy within devices, even from cudaMemcpy.
  if (wait && !(source.is_device() && target.is_device())) {
    ++counting().host_waits;
    wait_for_stream(s);
  }
  return error_of_device(s->device);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream, bool wait) {
  const Rectangle line{bytes, 1, bytes};
  return copy(to, line, from, line, kind, stream, wait);
}

// The host never waits, as with CUDA: what other streams do afterwards needs an order of its own.
cudaError_t set(void* to, const Rectangle& shape, int value, cudaStream_t stream) {
  cudaStream_t s = resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (shape.is_empty()) return error_of_device(s->device);
  if (shape.pitch < shape.width) return fail(cudaErrorInvalidPitchValue);
  MemoryRange target;
  if (const cudaError_t error = look_up(to, shape.extent(), target); error != cudaSuccess)
    return fail(error);
  if (target.allocation == nullptr) return fail(cudaErrorInvalidValue);
  counting().copies += 1;
  const cudaError_t error = enqueue(s, "memset", [=](std::uint32_t id, const VectorClock& known) {
    ExecutionLock lock;
    for (std::size_t i = 0; i < shape.rows; ++i) {
      note_write(row(target, shape, i), "memset", id, known);
      std::memset(static_cast<char*>(to) + i * shape.pitch, value, shape.width);
      mark_written(row(target, shape, i));
    }
  });
  if (error != cudaSuccess) return fail(error);
  return error_of_device(s->device);
}

// The memory of a peer copy lies where the call says.
cudaError_t check_device(const void* pointer, int device) {
  if (device_at(device) == nullptr) return cudaErrorInvalidDevice;
  MemoryRange range;
  if (const cudaError_t error = look_up(pointer, 0, range); error != cudaSuccess) return error;
  return range.is_device() && range.allocation->device == device ? cudaSuccess
                                                                 : cudaErrorInvalidValue;
}

cudaError_t copy_peer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                      cudaStream_t stream, bool wait) {
  if (const cudaError_t error = check_device(to, to_device); error != cudaSuccess)
    return fail(error);
  if (const cudaError_t error = check_device(from, from_device); error != cudaSuccess)
    return fail(error);
  return copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, wait);
}

}  // namespace
}  // namespace vgpu

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return vgpu::copy(to, from, bytes, kind, stream, false);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return vgpu::copy(to, from, bytes, kind, nullptr, true);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return vgpu::copy(to, {width, height, to_pitch}, from, {width, height, from_pitch}, kind, stream,
                    false);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return vgpu::copy(to, {width, height, to_pitch}, from, {width, height, from_pitch}, kind, nullptr,
                    true);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream) {
  return vgpu::copy_peer(to, to_device, from, from_device, bytes, stream, false);
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes) {
  return vgpu::copy_peer(to, to_device, from, from_device, bytes, nullptr, true);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return vgpu::set(to, {bytes, 1, bytes}, value, stream);
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return vgpu::set(to, {bytes, 1, bytes}, value, nullptr);
}

cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  return vgpu::set(to, {width, height, pitch}, value, stream);
}

cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return vgpu::set(to, {width, height, pitch}, value, nullptr);
}
