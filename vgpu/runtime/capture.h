// Stream capture: what is enqueued on a capturing stream becomes steps of a graph instead.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "vgpu/include/vgpu/host_api.h"
#include "vgpu/runtime/operation.h"

namespace vgpu {

using Work = std::function<void(std::uint32_t id, const VectorClock& known)>;

// A graph is the captured calls themselves, by branch: the stream that the capture began on is
// branch 0, each stream that joined it by an event is another.
struct GraphStep {
  enum class Kind { kOperation, kRecord, kWait };
  Kind kind = Kind::kOperation;
  std::size_t branch = 0;
  std::size_t point = 0;  // recorded or waited for
  std::string name;
  Work work;
};

struct Graph {
  std::vector<GraphStep> steps;
  std::vector<int> devices;  // of the branches
  std::size_t points = 0;

  std::size_t operations() const;
};

// A capture in progress, shared by its streams and the events recorded in it.
struct Capture {
  Graph graph;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool active = true;
  bool invalid = false;
  std::vector<cudaStream_t> streams;   // by branch
  std::vector<VectorClock> known;      // by branch: steps of each that are over by then
  std::vector<std::uint32_t> lengths;  // by branch: steps so far
};

// All under host_mutex().
void capture_operation(CUstream_st& stream, const std::string& name, Work work);
cudaError_t capture_record(CUstream_st& stream, CUevent_st& event);
// Lets the stream join the event's capture if it captures nothing yet.
cudaError_t capture_wait(CUstream_st& stream, CUevent_st& event);
// A call on the default stream while streams that order themselves with it are captured.
cudaError_t refuse_default_stream(const CUstream_st& stream);

// For calls that wait or allocate: true, and the captures are invalid, where they are not allowed:
// `stream` is captured (null: no particular one), or a capture of this thread or a global one is
// under way and the thread has not asked for cudaStreamCaptureModeRelaxed.
bool refuse_in_capture(cudaStream_t stream);

}  // namespace vgpu
