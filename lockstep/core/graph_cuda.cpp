#include "lockstep/core/graph.h"

#include <string>

#include "lockstep/core/capture_cuda.h"
#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/core/error.h"
#include "lockstep/core/error_cuda.h"
#include "lockstep/core/graph_memory.h"

namespace lockstep {
namespace cuda {
namespace {

thread_local bool t_captures = false;

}  // namespace

bool is_captured(cudaStream_t stream) {
  if (!stream) return false;  // a default stream can't be
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

bool thread_captures() { return t_captures; }
void set_thread_captures(bool captures) { t_captures = captures; }

void refuse_in_capture(const char* op) {
  if (t_captures)
    throw Error(std::string(op) +
                ": not possible inside Graph::capture(), where work is only written down; read "
                "values after replay()");
}

}  // namespace cuda

namespace detail {

class GraphState {
 public:
  explicit GraphState(Device device) : device_(device), memory_(device) {}
  ~GraphState() {
    if (exec_) cudaGraphExecDestroy(exec_);
  }
  GraphState(const GraphState&) = delete;
  GraphState& operator=(const GraphState&) = delete;

  Device device() const { return device_; }

  void capture(const std::function<void()>& work) {
    const DeviceGuard guard(device_);
    Capture capture(&memory_, stream_.native());
    {
      const StreamGuard on_stream(stream_);
      work();
    }
    const cudaGraph_t graph = capture.finish();
    const cudaError_t status = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    cuda::check(status, "cudaGraphInstantiate");
  }

  void replay() const {
    const DeviceGuard guard(device_);
    cuda::check(cudaGraphLaunch(exec_, current_native_stream(device_)), "cudaGraphLaunch");
  }

 private:
  // The capture under way: ends however its scope is left.
  class Capture {
   public:
    Capture(GraphMemory* memory, cudaStream_t stream) : memory_(memory), stream_(stream) {
      memory_->begin();
      const cudaError_t status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      if (status != cudaSuccess) {
        memory_->end();
        cuda::check(status, "cudaStreamBeginCapture");
      }
      cuda::set_thread_captures(true);
    }
    ~Capture() {
      cuda::set_thread_captures(false);
      if (!finished_) {
        cudaGraph_t graph = nullptr;
        if (cudaStreamEndCapture(stream_, &graph) != cudaSuccess) cudaGetLastError();
        if (graph) cudaGraphDestroy(graph);
      }
      memory_->end();
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    cudaGraph_t finish() {
      finished_ = true;
      cudaGraph_t graph = nullptr;
      cuda::check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
      return graph;
    }

   private:
    GraphMemory* memory_;
    cudaStream_t stream_;
    bool finished_ = false;
  };

  Device device_;
  // Before memory_: its blocks belong to the stream.
  Stream stream_ = Stream::create(device_);
  GraphMemory memory_;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace detail

Graph Graph::capture(Device device, const std::function<void()>& work) {
  if (!device.is_cuda())
    throw Error("graph: only a CUDA device captures work, not " + device.str());
  require_device(device, "graph");
  if (!work) throw Error("graph: an empty function was to be captured");
  cuda::refuse_in_capture("graph");
  auto state = std::make_shared<detail::GraphState>(device);
  state->capture(work);
  return Graph(std::move(state));
}

Device Graph::device() const { return state_->device(); }
void Graph::replay() const {
  cuda::refuse_in_capture("graph: replay");
  state_->replay();
}

}  // namespace lockstep
