// The backward pass: one topological walk from the roots to the leaves, on the calling thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/autograd/node.h"

namespace lockstep {

struct BackwardRoot {
  std::shared_ptr<Node> node;
  Tensor gradient;
};

// A node whose incoming gradient is kept in `*result`; leaves named here accumulate nothing.
struct GradientCapture {
  Node* node;
  Tensor* result;
};

// Every node runs once, after all nodes that use its output, the latest recorded first. With
// captures, leaves do not accumulate: only the captured gradients are delivered. Throws Error
// naming the operation where one was dropped or has had a saved tensor changed. Unless
// retain_graph, each node drops what it saved as soon as it has run.
void run_backward(std::span<const BackwardRoot> roots, bool retain_graph,
                  std::span<const GradientCapture> captures = {});

// To be called inside a backward pass (by a hook): `callback` runs on the same thread once the pass
// is through, not if it throws. Throws Error outside of a pass.
void run_after_backward(std::function<void()> callback);

}  // namespace lockstep
