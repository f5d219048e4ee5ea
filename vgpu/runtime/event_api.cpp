// cudaEvent….
#include <chrono>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/counting.h"
#include "vgpu/runtime/device.h"
#include "vgpu/runtime/stream.h"

using vgpu::fail;

namespace {

constexpr unsigned kAllFlags =
    cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;

bool is_captured(const CUevent_st& event) {
  return event.capture != nullptr && event.capture->active;
}

}  // namespace

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (event == nullptr || (flags & ~kAllFlags) != 0) return fail(cudaErrorInvalidValue);
  if ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming))
    return fail(cudaErrorInvalidValue);
  if (vgpu::device_at(vgpu::current_device()) == nullptr) return fail(cudaErrorNoDevice);
  auto* made = new CUevent_st;
  made->device = vgpu::current_device();
  made->flags = flags;
  if (flags & cudaEventInterprocess) made->shared = vgpu::IpcEvent::create();
  *event = made;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr || event == nullptr || event->device != s->device)
    return fail(cudaErrorInvalidResourceHandle);
  if (flags != cudaEventRecordDefault) return fail(cudaErrorNotSupported);
  std::lock_guard lock(vgpu::host_mutex());
  if (const cudaError_t error = vgpu::refuse_default_stream(*s); error != cudaSuccess)
    return fail(error);
  if (s->is_capturing()) {
    const cudaError_t error = vgpu::capture_record(*s, *event);
    return error == cudaSuccess ? error : fail(error);
  }
  event->capture = nullptr;
  vgpu::order_with_default(*s);
  if (event->shared != nullptr)
    s->push([shared = event->shared, number = event->shared->record()] { shared->set(number); });
  event->signal = s->record();
  event->clock = s->clock;
  event->clock.merge(vgpu::host_clock());
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = vgpu::error_of_device(event->device); error != cudaSuccess)
    return error;
  std::lock_guard lock(vgpu::host_mutex());
  if (is_captured(*event)) {
    event->capture->invalid = true;
    return fail(cudaErrorCapturedEvent);
  }
  if (event->shared != nullptr && !event->shared->is_set(event->shared->recorded()))
    return cudaErrorNotReady;
  if (event->signal && !event->signal->is_set()) return cudaErrorNotReady;
  vgpu::host_clock().merge(event->clock);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  std::shared_ptr<vgpu::Signal> signal;
  vgpu::VectorClock clock;
  {
    std::lock_guard lock(vgpu::host_mutex());
    if (is_captured(*event)) {
      event->capture->invalid = true;
      return fail(cudaErrorCapturedEvent);
    }
    signal = event->signal;
    clock = event->clock;
  }
  ++vgpu::counting().host_waits;
  if (event->shared != nullptr) event->shared->wait(event->shared->recorded());
  if (signal) signal->wait();
  std::lock_guard lock(vgpu::host_mutex());
  vgpu::host_clock().merge(clock);
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
