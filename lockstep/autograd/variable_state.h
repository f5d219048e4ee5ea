// What a Variable points at. For the autograd layer's own files.
#pragma once

#include <utility>

#include "lockstep/autograd/variable.h"

namespace lockstep {

struct Variable::State {
  Tensor data;
  Tensor grad;
  Tensor grad_buffer;
  std::shared_ptr<Node> grad_fn;      // of a result
  std::shared_ptr<Node> accumulator;  // of a leaf that requires a gradient
  std::vector<std::pair<std::uint64_t, PostAccumulateHook>> post_hooks;
  std::uint64_t view_version = 0;  // of the storage when this view was made
  bool is_view = false;
  bool inference = false;

  explicit State(Tensor value) : data(std::move(value)) {}

  // Where a gradient of this variable goes; null if none is wanted.
  const std::shared_ptr<Node>& gradient_edge() const { return grad_fn ? grad_fn : accumulator; }
};

// The node at the end of the graph: adds the arriving gradient to a leaf's grad.
std::shared_ptr<Node> make_accumulator(const std::shared_ptr<Variable::State>& leaf);

// Number for the next node, and for hooks; unique in the process.
std::uint64_t next_sequence();

}  // namespace lockstep
