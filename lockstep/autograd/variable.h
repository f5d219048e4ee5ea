// A tensor in a graph: its value, its gradient, and the operation it came from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/autograd/node.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

class Variable;
using PostAccumulateHook = std::function<void(Variable&)>;

// A handle: copies share value, gradient and history. Results of operations have a history; leaves
// (made from a Tensor) have none, and those that require a gradient collect it in grad().
class Variable {
 public:
  Variable() = default;  // undefined
  // A leaf. Implicit, so that a Tensor can be handed to any operation. Throws Error if a gradient
  // is asked for a dtype that is not floating.
  Variable(Tensor data, bool requires_grad = false);  // NOLINT(google-explicit-constructor)

  bool defined() const { return state_ != nullptr; }
  const Tensor& data() const;
  const Shape& shape() const { return data().shape(); }
  DType dtype() const { return data().dtype(); }
  int dim() const { return data().dim(); }
  std::int64_t size(std::int64_t axis) const { return data().size(axis); }
  std::int64_t numel() const { return data().numel(); }
  template <class T = double>
  T item() const {
    return data().item<T>();
  }

  bool requires_grad() const;
  // Throws Error on a result of an operation or a dtype that is not floating.
  Variable& requires_grad_(bool value = true);
  bool is_leaf() const;
  // The same value without history; shares storage and version counter.
  Variable detach() const;

  // Undefined until a backward pass has reached this leaf (or retain_grad() asked for it).
  const Tensor& grad() const;
  // Shape and dtype must be the value's; undefined clears it.
  void set_grad(Tensor grad);
  // To none (as PyTorch's default), or to zeros kept in place.
  void zero_grad(bool set_to_none = true);
  // Keeps the gradient of a result of an operation too.
  void retain_grad();
  // Where the gradient is to be stored when it arrives while grad() is undefined: a view of the
  // caller's memory, e.g. of a bucket. Same shape and dtype as the value; undefined for no such
  // wish.
  void set_grad_buffer(Tensor buffer);
  const Tensor& grad_buffer() const;

  // Gives a leaf another value, e.g. a view of flat storage. As in PyTorch, shape and dtype may be
  // others (floating ones, if a gradient is required); then the gradient and its buffer, which
  // would no longer fit, are dropped. A graph recorded before keeps the old value.
  void set_data(Tensor data);

  // Adds d(this)/d(leaf) to grad() of every leaf below. `gradient` is that of this variable, ones
  // if it has a single element and none is given. The graph is dropped unless retain_graph.
  void backward(const Tensor& gradient = {}, bool retain_graph = false) const;

  // Called with the whole gradient of this variable before it goes on; remove_hook(id) undoes.
  std::uint64_t register_hook(GradientHook hook);
  // On a leaf: called after grad() has taken this backward pass's gradient.
  std::uint64_t register_post_accumulate_grad_hook(PostAccumulateHook hook);
  void remove_hook(std::uint64_t id);

  // Same variable, not same value.
  bool is(const Variable& other) const { return state_ == other.state_; }
  const void* id() const { return state_.get(); }

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }
  explicit Variable(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  State& checked() const;
  std::shared_ptr<State> state_;
};

// Gradients of `outputs` with respect to `inputs` (leaves or results), without touching any grad().
// An input that the outputs do not depend on gets an undefined tensor.
std::vector<Tensor> grad(std::span<const Variable> outputs, std::span<const Variable> inputs,
                         std::span<const Tensor> gradients = {}, bool retain_graph = false);

// Several roots in one pass; gradients[i] belongs to outputs[i].
void backward(std::span<const Variable> outputs, std::span<const Tensor> gradients = {},
              bool retain_graph = false);

}  // namespace lockstep
