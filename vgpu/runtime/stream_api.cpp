// cudaStream… and cudaEvent….
#include <chrono>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/counting.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/stream.h"

using vgpu::fail;

namespace {

cudaError_t create(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr || (flags & ~cudaStreamNonBlocking) != 0) return fail(cudaErrorInvalidValue);
  std::lock_guard lock(vgpu::host_mutex());
  vgpu::Device* device = vgpu::device_at(vgpu::current_device());
  if (device == nullptr) return fail(cudaErrorNoDevice);
  *stream = new CUstream_st(device->index, flags);
  vgpu::add_stream(*stream);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return create(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create(stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return create(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

// As with CUDA, what is queued is still carried out.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr || vgpu::resolve(stream) == nullptr)
    return fail(cudaErrorInvalidResourceHandle);
  vgpu::remove_stream(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = vgpu::error_of_device(s->device); error != cudaSuccess) return error;
  return s->idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  ++vgpu::counting().host_waits;
  vgpu::wait_for_stream(s);
  return vgpu::error_of_device(s->device);
}

cudaError_t cudaDeviceSynchronize() {
  ++vgpu::counting().host_waits;
  std::vector<cudaStream_t> streams;
  {
    std::lock_guard lock(vgpu::host_mutex());
    vgpu::Device* device = vgpu::device_at(vgpu::current_device());
    if (device == nullptr) return fail(cudaErrorNoDevice);
    streams = device->streams;
    streams.push_back(device->default_stream);
  }
  for (cudaStream_t stream : streams) vgpu::wait_for_stream(stream);
  return vgpu::error_of_device(vgpu::current_device());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr || event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  std::lock_guard lock(vgpu::host_mutex());
  if (!event->signal) return cudaSuccess;
  s->wait_for(event->signal);
  s->clock.merge(event->clock);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (function == nullptr) return fail(cudaErrorInvalidValue);
  vgpu::enqueue(s, "host function",
                [=](std::uint32_t, const vgpu::VectorClock&) { function(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (event == nullptr) return fail(cudaErrorInvalidValue);
  *event = new CUevent_st{vgpu::current_device(), flags, nullptr, {}};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr || event == nullptr || event->device != s->device)
    return fail(cudaErrorInvalidResourceHandle);
  std::lock_guard lock(vgpu::host_mutex());
  event->signal = s->record();
  event->clock = s->clock;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = vgpu::error_of_device(event->device); error != cudaSuccess)
    return error;
  std::lock_guard lock(vgpu::host_mutex());
  if (event->signal && !event->signal->is_set()) return cudaErrorNotReady;
  vgpu::host_clock().merge(event->clock);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  ++vgpu::counting().host_waits;
  const auto signal = event->signal;
  if (signal) signal->wait();
  std::lock_guard lock(vgpu::host_mutex());
  vgpu::host_clock().merge(event->clock);
  return vgpu::error_of_device(event->device);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start == nullptr || end == nullptr || !start->signal || !end->signal ||
      ((start->flags | end->flags) & cudaEventDisableTiming))
    return fail(cudaErrorInvalidResourceHandle);
  if (!start->signal->is_set() || !end->signal->is_set()) return cudaErrorNotReady;
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->signal->time() - start->signal->time()).count();
  return cudaSuccess;
}
