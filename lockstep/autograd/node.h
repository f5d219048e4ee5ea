// One recorded operation: its inputs and how a gradient goes back through it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep {

// A function of the gradient of one variable; a defined result replaces the gradient.
using GradientHook = std::function<Tensor(const Tensor& gradient)>;

// Where a node's backward puts the gradients of its inputs.
class Gradients {
 public:
  Gradients(std::span<const std::shared_ptr<class Node>> inputs, std::span<Tensor> values)
      : inputs_(inputs), values_(values) {}

  int count() const { return static_cast<int>(inputs_.size()); }
  // Whether anything upstream of input i wants its gradient.
  bool needs(int i) const { return inputs_[i] != nullptr; }
  // Stores f() as the gradient of input i, or leaves f uncalled where nobody wants it.
  template <class F>
  void set(int i, F&& f) {
    if (needs(i)) values_[i] = f();
  }

 private:
  std::span<const std::shared_ptr<Node>> inputs_;
  std::span<Tensor> values_;
};

// Every node has one differentiable output. Inputs that need no gradient are null.
class Node {
 public:
  Node(const char* name, std::span<std::shared_ptr<Node>> inputs, std::uint64_t sequence)
      : inputs_(inputs), name_(name), sequence_(sequence) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Takes the whole gradient of the output.
  virtual void apply(const Tensor& dy, Gradients& dx) = 0;
  // Drops what was saved for backward; a later apply() is an Error.
  virtual void release() {}

  const char* name() const { return name_; }
  std::span<const std::shared_ptr<Node>> inputs() const { return inputs_; }
  // Grows with every recorded operation of the process: later operations go back first.
  std::uint64_t sequence() const { return sequence_; }

  struct HookEntry {
    std::uint64_t id;
    GradientHook hook;
  };
  std::vector<HookEntry>& hooks() { return hooks_; }

 protected:
  // Dropping the last handle of a long chain would recurse once per node; this unlinks the inputs
  // in a loop instead. To be called by the destructor that owns the array of inputs.
  static void unlink(std::span<std::shared_ptr<Node>> inputs) noexcept;

  std::span<std::shared_ptr<Node>> inputs_;

 private:
  std::vector<HookEntry> hooks_;
  const char* name_;
  std::uint64_t sequence_;
};

}  // namespace lockstep
