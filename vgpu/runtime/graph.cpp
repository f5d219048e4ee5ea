#include "vgpu/runtime/graph.h"

#include <algorithm>

#include "vgpu/runtime/counting.h"
#include "vgpu/runtime/device.h"

namespace vgpu {
namespace {

// The captured calls once more, each on the stream of its branch.
cudaError_t replay(CUgraphExec_st& exec, CUstream_st& stream) {
  std::vector<std::shared_ptr<Signal>> signals(exec.graph.points);
  std::vector<VectorClock> clocks(exec.graph.points);
  for (const GraphStep& step : exec.graph.steps) {
    CUstream_st& branch = step.branch == 0 ? stream : *exec.branches[step.branch];
    switch (step.kind) {
      case GraphStep::Kind::kOperation:
        if (const cudaError_t error = enqueue(&branch, step.name, step.work); error != cudaSuccess)
          return error;
        break;
      case GraphStep::Kind::kRecord:
        signals[step.point] = branch.record();
        clocks[step.point] = branch.clock;
        break;
      case GraphStep::Kind::kWait:
        branch.wait_for(signals[step.point]);
        branch.clock.merge(clocks[step.point]);
        break;
    }
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace vgpu

using vgpu::fail;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (exec == nullptr || graph == nullptr) return fail(cudaErrorInvalidValue);
  auto made = std::make_unique<CUgraphExec_st>();
  made->graph = graph->graph;
  for (std::size_t b = 0; b < made->graph.devices.size(); ++b)
    made->branches.push_back(
        b == 0 ? nullptr
               : std::make_unique<CUstream_st>(made->graph.devices[b], cudaStreamNonBlocking));
  *exec = made.release();
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  std::lock_guard lock(vgpu::host_mutex());
  cudaStream_t s = vgpu::resolve(stream);
  if (s == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (exec == nullptr) return fail(cudaErrorInvalidValue);
  if (s->is_capturing()) return fail(cudaErrorStreamCaptureUnsupported);
  if (s->device != exec->graph.devices[0]) return fail(cudaErrorInvalidValue);
  if (const cudaError_t error = vgpu::error_of_device(s->device); error != cudaSuccess)
    return error;
  if (const cudaError_t error = vgpu::refuse_default_stream(*s); error != cudaSuccess)
    return fail(error);
  ++vgpu::counting().graph_launches;
  // Launches of one graph come one after the other.
  if (exec->last != nullptr) {
    s->wait_for(exec->last);
    s->clock.merge(exec->last_clock);
  }
  const cudaError_t error = vgpu::replay(*exec, *s);
  exec->last = s->record();
  exec->last_clock = s->clock;
  return error == cudaSuccess ? error : fail(error);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (vgpu::resolve(stream) == nullptr) return fail(cudaErrorInvalidResourceHandle);
  return exec == nullptr ? fail(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (graph == nullptr || count == nullptr) return fail(cudaErrorInvalidValue);
  if (nodes != nullptr) return fail(cudaErrorNotSupported);
  *count = graph->graph.operations();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return fail(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

// A launch that is under way is carried out first.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  if (exec == nullptr) return fail(cudaErrorInvalidValue);
  if (exec->last != nullptr) exec->last->wait();
  delete exec;
  return cudaSuccess;
}
