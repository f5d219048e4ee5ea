#include "vgpu/runtime/capture.h"

#include <algorithm>

#include "vgpu/runtime/device.h"
#include "vgpu/runtime/graph.h"
#include "vgpu/runtime/stream.h"

namespace vgpu {
namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

std::vector<std::shared_ptr<Capture>>& captures() {
  static auto* the = new std::vector<std::shared_ptr<Capture>>;
  return *the;
}

std::uint32_t add_step(Capture& capture, GraphStep step) {
  const auto branch = static_cast<std::uint32_t>(step.branch);
  capture.graph.steps.push_back(std::move(step));
  const std::uint32_t count = ++capture.lengths[branch];
  capture.known[branch].set(branch, count);
  return count;
}

void join(const std::shared_ptr<Capture>& capture, CUstream_st& stream) {
  stream.capture = capture;
  stream.branch = capture->streams.size();
  capture->streams.push_back(&stream);
  capture->graph.devices.push_back(stream.device);
  capture->known.emplace_back();
  capture->lengths.push_back(0);
}

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return error;
}

// All branches have come back to the first.
bool is_joined(const Capture& capture) {
  for (std::size_t b = 1; b < capture.lengths.size(); ++b)
    if (capture.known[0].at(static_cast<std::uint32_t>(b)) < capture.lengths[b]) return false;
  return true;
}

}  // namespace

std::size_t Graph::operations() const {
  return static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), [](const auto& step) {
    return step.kind == GraphStep::Kind::kOperation;
  }));
}

void capture_operation(CUstream_st& stream, const std::string& name, Work work) {
  add_step(*stream.capture, {GraphStep::Kind::kOperation, stream.branch, 0, name, std::move(work)});
}

cudaError_t capture_record(CUstream_st& stream, CUevent_st& event) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  event.capture = stream.capture;
  event.point = capture.graph.points++;
  event.signal = nullptr;
  add_step(capture, {GraphStep::Kind::kRecord, stream.branch, event.point, "", {}});
  event.clock = capture.known[stream.branch];
  return cudaSuccess;
}

cudaError_t capture_wait(CUstream_st& stream, CUevent_st& event) {
  if (event.capture == nullptr || !event.capture->active)
    return invalidate(*stream.capture, cudaErrorStreamCaptureIsolation);
  Capture& capture = *event.capture;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream.capture == nullptr) {
    if (&stream == device_at(stream.device)->default_stream)
      return invalidate(capture, cudaErrorStreamCaptureImplicit);
    join(event.capture, stream);
  } else if (stream.capture != event.capture) {
    capture.invalid = true;
    return invalidate(*stream.capture, cudaErrorStreamCaptureMerge);
  }
  add_step(capture, {GraphStep::Kind::kWait, stream.branch, event.point, "", {}});
  capture.known[stream.branch].merge(event.clock);
  return cudaSuccess;
}

cudaError_t refuse_default_stream(const CUstream_st& stream) {
  if (&stream != device_at(stream.device)->default_stream) return cudaSuccess;
  for (const auto& capture : captures())
    for (cudaStream_t s : capture->streams)
      if (s->device == stream.device && !(s->flags & cudaStreamNonBlocking))
        return invalidate(*capture, cudaErrorStreamCaptureImplicit);
  return cudaSuccess;
}

bool refuse_in_capture(cudaStream_t stream) {
  std::lock_guard lock(host_mutex());
  bool refused = false;
  for (const auto& capture : captures()) {
    const bool own = stream != nullptr && stream->capture == capture;
    const bool unsafe = thread_mode != cudaStreamCaptureModeRelaxed &&
                        ((capture->mode == cudaStreamCaptureModeGlobal &&
                          thread_mode == cudaStreamCaptureModeGlobal) ||
                         (capture->mode != cudaStreamCaptureModeRelaxed &&
                          capture->thread == std::this_thread::get_id()));
    if (!own && !unsafe) continue;
    capture->invalid = true;
    refused = true;
  }
  return refused;
}

}  // namespace vgpu

using vgpu::fail;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  std::lock_guard lock(vgpu::host_mutex());
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (s == vgpu::device_at(s->device)->default_stream)
    return fail(cudaErrorStreamCaptureUnsupported);
  if (s->is_capturing()) return fail(cudaErrorIllegalState);
  auto capture = std::make_shared<vgpu::Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  vgpu::join(capture, *s);
  vgpu::captures().push_back(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::lock_guard lock(vgpu::host_mutex());
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (graph == nullptr) return fail(cudaErrorInvalidValue);
  *graph = nullptr;
  if (!s->is_capturing()) return fail(cudaErrorIllegalState);
  const std::shared_ptr<vgpu::Capture> capture = s->capture;
  if (s->branch != 0) {
    capture->invalid = true;
    return fail(cudaErrorStreamCaptureUnmatched);
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return fail(cudaErrorStreamCaptureWrongThread);
  capture->active = false;
  for (cudaStream_t member : capture->streams) member->capture = nullptr;
  std::erase(vgpu::captures(), capture);
  if (capture->invalid) return fail(cudaErrorStreamCaptureInvalidated);
  if (!vgpu::is_joined(*capture)) return fail(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->graph)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  std::lock_guard lock(vgpu::host_mutex());
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (status == nullptr) return fail(cudaErrorInvalidValue);
  *status = !s->is_capturing()    ? cudaStreamCaptureStatusNone
            : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return fail(cudaErrorInvalidValue);
  std::swap(*mode, vgpu::thread_mode);
  return cudaSuccess;
}
