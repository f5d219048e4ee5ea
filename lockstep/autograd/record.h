// How an operation enters the graph: its result, its inputs, and a closure that is its backward.
//
//   Variable softmax(const Variable& x, std::int64_t axis) {
//     const int a = normalize_axis(axis, x.dim(), "softmax");
//     return record("softmax", kernels::softmax_forward(x.data(), a), inputs(x), [&](const Tensor&
//     y) {
//       return [y = SavedTensor(y), a](const Tensor& dy, Gradients& dx) {
//         dx.set(0, [&] { return kernels::softmax_backward(dy, y.get(), a); });
//       };
//     });
//   }
//
// The outer lambda runs only where a gradient is wanted; what it saves lives until the first
// backward pass is through (or as long as the graph, with retain_graph).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/autograd/grad_mode.h"
#include "lockstep/autograd/node.h"
#include "lockstep/autograd/saved_tensor.h"
#include "lockstep/autograd/variable.h"

namespace lockstep {

template <std::size_t N>
using Inputs = std::array<const Variable*, N>;

template <class... V>
Inputs<sizeof...(V)> inputs(const V&... variables) {
  return {&variables...};
}

namespace internal {

[[noreturn]] void throw_released(const char* name);

template <class F, std::size_t N>
class ClosureNode final : public Node {
 public:
  ClosureNode(const char* name, std::uint64_t sequence, F backward)
      : Node(name, edges_, sequence), backward_(std::move(backward)) {}
  ~ClosureNode() override { unlink(edges_); }

  void apply(const Tensor& dy, Gradients& dx) override {
    if (!backward_) throw_released(name());
    (*backward_)(dy, dx);
  }
  void release() override { backward_.reset(); }

  std::array<std::shared_ptr<Node>, N> edges_;

 private:
  std::optional<F> backward_;
};

// The same for a number of inputs that only the call knows.
template <class F>
class ListClosureNode final : public Node {
 public:
  ListClosureNode(const char* name, std::uint64_t sequence, F backward, std::size_t count)
      : Node(name, {}, sequence), edges_(count), backward_(std::move(backward)) {
    inputs_ = edges_;
  }
  ~ListClosureNode() override { unlink(edges_); }

  void apply(const Tensor& dy, Gradients& dx) override {
    if (!backward_) throw_released(name());
    (*backward_)(dy, dx);
  }
  void release() override { backward_.reset(); }

  std::vector<std::shared_ptr<Node>> edges_;

 private:
  std::optional<F> backward_;
};

// True if one of the inputs wants a gradient and the mode allows recording. Refuses inputs that no
// graph may use: results of inference mode, views whose base was changed in place.
bool wants_record(const char* name, std::span<const Variable* const> inputs);
std::uint64_t next_node_sequence();
void link(std::span<std::shared_ptr<Node>> edges, std::span<const Variable* const> inputs);
// The result: without history, or with `node` as it. A result that shares storage with `view_of` is
// marked as its view.
Variable make_result(Tensor result, std::span<const Variable* const> inputs,
                     std::shared_ptr<Node> node);
// x gets `node` as its history and its version counted up.
void rebase(Variable& x, std::shared_ptr<Node> node);
void check_in_place(const char* name, const Variable& x);

}  // namespace internal

template <std::size_t N, class Make>
Variable record(const char* name, Tensor result, const Inputs<N>& inputs, Make&& make) {
  if (!internal::wants_record(name, inputs))
    return internal::make_result(std::move(result), inputs, nullptr);
  auto backward = make(std::as_const(result));
  auto node = std::make_shared<internal::ClosureNode<decltype(backward), N>>(
      name, internal::next_node_sequence(), std::move(backward));
  internal::link(node->edges_, inputs);
  return internal::make_result(std::move(result), inputs, std::move(node));
}

// The same for a list of inputs (cat, stack).
template <class Make>
Variable record(const char* name, Tensor result, std::span<const Variable> variables, Make&& make) {
  std::vector<const Variable*> inputs;
  inputs.reserve(variables.size());
  for (const Variable& v : variables) inputs.push_back(&v);
  if (!internal::wants_record(name, inputs))
    return internal::make_result(std::move(result), inputs, nullptr);
  auto backward = make(std::as_const(result));
  auto node = std::make_shared<internal::ListClosureNode<decltype(backward)>>(
      name, internal::next_node_sequence(), std::move(backward), inputs.size());
  internal::link(node->edges_, inputs);
  return internal::make_result(std::move(result), inputs, std::move(node));
}

// An operation that writes its result into x (input 0 is x before the change). `write` changes
// x.data(); what backward needs of the old value must be saved as a copy by `make`, which runs
// before `write`. Throws Error on a leaf that requires a gradient while the mode records, and on a
// view that is part of a graph.
template <std::size_t N, class Write, class Make>
void record_in_place(const char* name, Variable& x, const Inputs<N>& inputs, Write&& write,
                     Make&& make) {
  if (!internal::wants_record(name, inputs)) {
    write(x.data());
    x.data().bump_version();
    return;
  }
  internal::check_in_place(name, x);
  auto backward = make();
  auto node = std::make_shared<internal::ClosureNode<decltype(backward), N>>(
      name, internal::next_node_sequence(), std::move(backward));
  internal::link(node->edges_, inputs);
  write(x.data());
  internal::rebase(x, std::move(node));
}

}  // namespace lockstep
