// cudaStream… and cudaEvent….
#include <algorithm>
#include <vector>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/counting.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/stream.h"

using vgpu::fail;

namespace {

constexpr int kGreatestPriority = -5;

cudaError_t create(cudaStream_t* stream, unsigned flags, int priority) {
  if (stream == nullptr || (flags & ~cudaStreamNonBlocking) != 0)
    return fail(cudaErrorInvalidValue);
  std::lock_guard lock(vgpu::host_mutex());
  vgpu::Device* device = vgpu::device_at(vgpu::current_device());
  if (device == nullptr) return fail(cudaErrorNoDevice);
  *stream = new CUstream_st(device->index, flags, std::clamp(priority, kGreatestPriority, 0));
  vgpu::add_stream(*stream);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return create(stream, cudaStreamDefault, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create(stream, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  *flags = s->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  *priority = s->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  *device = s->device;
  return cudaSuccess;
}

// As with CUDA, what is queued is still carried out.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || vgpu::resolve(stream) == nullptr)
    return fail(cudaErrorInvalidResourceHandle);
  if (vgpu::refuse_in_capture(stream)) return fail(cudaErrorStreamCaptureUnsupported);
  vgpu::remove_stream(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (vgpu::refuse_in_capture(s)) return fail(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t error = vgpu::error_of_device(s->device); error != cudaSuccess)
    return error;
  std::lock_guard lock(vgpu::host_mutex());
  if (!s->idle()) return cudaErrorNotReady;
  vgpu::host_clock().merge(s->clock);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (vgpu::refuse_in_capture(s)) return fail(cudaErrorStreamCaptureUnsupported);
  ++vgpu::counting().host_waits;
  vgpu::wait_for_stream(s);
  return vgpu::error_of_device(s->device);
}

cudaError_t cudaDeviceSynchronize() {
  const int device = vgpu::current_device();
  if (vgpu::device_at(device) == nullptr) return fail(cudaErrorNoDevice);
  if (vgpu::refuse_in_capture(nullptr)) return fail(cudaErrorStreamCaptureUnsupported);
  ++vgpu::counting().host_waits;
  vgpu::wait_for_device(device);
  return vgpu::error_of_device(device);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr || event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  std::lock_guard lock(vgpu::host_mutex());
  if (s->is_capturing() || (event->capture != nullptr && event->capture->active)) {
    const cudaError_t error = vgpu::capture_wait(*s, *event);
    return error == cudaSuccess ? error : fail(error);
  }
  if (event->shared != nullptr)
    s->push([shared = event->shared, until = event->shared->recorded()] { shared->wait(until); });
  if (!event->signal) return cudaSuccess;
  s->wait_for(event->signal);
  s->clock.merge(event->clock);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (function == nullptr) return fail(cudaErrorInvalidValue);
  const cudaError_t error = vgpu::enqueue(
      s, "host function", [=](std::uint32_t, const vgpu::VectorClock&) { function(data); });
  return error == cudaSuccess ? error : fail(error);
}
