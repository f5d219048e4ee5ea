// Graph: work of a CUDA device captured once and then run often, each time by one call: the host's
// time per kernel is gone.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/core/device.h"

namespace lockstep {

namespace detail {
class GraphState;
}

// A handle; copies mean the same graph.
//
// A replay does exactly what was captured, at the same addresses: new input is copied into the
// tensors that the work read, results lie in those that it wrote. Tensors made by the work may be
// kept: each replay writes them anew. Tensors and pinned memory from before that the work uses must
// live as long as the graph. What the host decided or counted in the work (branches, positions of
// random sequences, step counts) is that of the capture in every replay.
class Graph {
 public:
  // Runs `work`, whose kernels and copies on the thread's current stream, and on streams that wait
  // for an event of it and that it waits for in the end, become the graph; nothing is carried out.
  // Everything that the work needs only once (its caches, its first allocations) is best done by
  // running it before. Throws Error for the CPU, inside another capture, and where the work waits
  // for the device (item(), synchronize, copies from or to memory that is not pinned) or enqueues a
  // host's task. What `work` throws ends the capture.
  static Graph capture(Device device, const std::function<void()>& work);

  Device device() const;
  // Runs it on the device's current stream.
  void replay() const;

 private:
  explicit Graph(std::shared_ptr<detail::GraphState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::GraphState> state_;
};

}  // namespace lockstep
