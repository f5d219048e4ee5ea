#include "lockstep/autograd/variable.h"

#include <algorithm>

#include "lockstep/autograd/engine.h"
#include "lockstep/autograd/grad_mode.h"
#include "lockstep/autograd/variable_state.h"
#include "lockstep/core/check.h"

namespace lockstep {
namespace {

void check_like_value(const char* what, const Tensor& t, const Tensor& value) {
  LOCKSTEP_CHECK(!t.defined() || (t.shape() == value.shape() && t.dtype() == value.dtype()),
                 "{}: expected {} {} as the value but got {} {}", what, value.dtype(),
                 value.shape(), t.dtype(), t.shape());
}

std::vector<BackwardRoot> make_roots(std::span<const Variable> outputs,
                                     std::span<const Tensor> gradients) {
  LOCKSTEP_CHECK(gradients.empty() || gradients.size() == outputs.size(),
                 "backward: {} outputs but {} gradients", outputs.size(), gradients.size());
  std::vector<BackwardRoot> roots;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Variable& y = outputs[i];
    LOCKSTEP_CHECK(y.requires_grad(),
                   "backward: output {} of shape {} does not depend on anything that requires a "
                   "gradient",
                   i, y.shape());
    Tensor gradient = gradients.empty() ? Tensor() : gradients[i];
    if (!gradient.defined()) {
      LOCKSTEP_CHECK(
          y.numel() == 1,
          "backward: a gradient must be given for an output of shape {}: only one with a "
          "single element has a default (1)",
          y.shape());
      gradient = full(y.shape(), 1, {y.dtype(), y.data().device()});
    }
    check_like_value("backward: gradient", gradient, y.data());
    roots.push_back({y.state()->gradient_edge(), std::move(gradient)});
  }
  return roots;
}

}  // namespace

Variable::Variable(Tensor data, bool requires_grad)
    : state_(std::make_shared<State>(std::move(data))) {
  state_->inference = is_inference_mode();
  if (requires_grad) requires_grad_();
}

Variable::State& Variable::checked() const {
  LOCKSTEP_CHECK(state_, "the variable is undefined");
  return *state_;
}

const Tensor& Variable::data() const { return checked().data; }
const Tensor& Variable::grad() const { return checked().grad; }
const Tensor& Variable::grad_buffer() const { return checked().grad_buffer; }
bool Variable::requires_grad() const { return state_ && state_->gradient_edge() != nullptr; }
bool Variable::is_leaf() const { return !checked().grad_fn; }

Variable& Variable::requires_grad_(bool value) {
  State& s = checked();
  LOCKSTEP_CHECK(!s.grad_fn,
                 "requires_grad_: only leaves have this switch; use detach() for a result without "
                 "history");
  if (!value) {
    s.accumulator.reset();
    return *this;
  }
  LOCKSTEP_CHECK(is_floating(s.data.dtype()),
                 "requires_grad_: expected a floating dtype but got {}", s.data.dtype());
  if (!s.accumulator) s.accumulator = make_accumulator(state_);
  return *this;
}

Variable Variable::detach() const { return Variable(data()); }

void Variable::set_grad(Tensor grad) {
  check_like_value("set_grad", grad, data());
  state_->grad = std::move(grad);
}

void Variable::zero_grad(bool set_to_none) {
  State& s = checked();
  if (!s.grad.defined()) return;
  if (set_to_none)
    s.grad = {};
  else
    zero_(s.grad);
}

void Variable::set_grad_buffer(Tensor buffer) {
  check_like_value("set_grad_buffer", buffer, data());
  state_->grad_buffer = std::move(buffer);
}

void Variable::set_data(Tensor data) {
  State& s = checked();
  LOCKSTEP_CHECK(!s.grad_fn, "set_data: only a leaf can be given another value");
  LOCKSTEP_CHECK(data.defined(), "set_data: the new value is undefined");
  LOCKSTEP_CHECK(!s.accumulator || is_floating(data.dtype()),
                 "set_data: the variable requires a gradient, which {} values have not",
                 data.dtype());
  if (data.dtype() != s.data.dtype() || data.shape() != s.data.shape()) {
    s.grad = {};
    s.grad_buffer = {};
  }
  s.data = std::move(data);
}

void Variable::retain_grad() {
  if (is_leaf()) return;
  register_hook([weak = std::weak_ptr(state_)](const Tensor& dy) {
    if (auto s = weak.lock()) s->grad = dy.clone();
    return Tensor();
  });
}

std::uint64_t Variable::register_hook(GradientHook hook) {
  LOCKSTEP_CHECK(requires_grad(), "register_hook: the variable requires no gradient");
  const std::uint64_t id = next_sequence();
  state_->gradient_edge()->hooks().push_back({id, std::move(hook)});
  return id;
}

std::uint64_t Variable::register_post_accumulate_grad_hook(PostAccumulateHook hook) {
  LOCKSTEP_CHECK(requires_grad() && is_leaf(),
                 "register_post_accumulate_grad_hook: expected a leaf that requires a gradient");
  const std::uint64_t id = next_sequence();
  state_->post_hooks.emplace_back(id, std::move(hook));
  return id;
}

void Variable::remove_hook(std::uint64_t id) {
  State& s = checked();
  std::erase_if(s.post_hooks, [id](const auto& entry) { return entry.first == id; });
  if (const auto& edge = s.gradient_edge())
    std::erase_if(edge->hooks(), [id](const auto& entry) { return entry.id == id; });
}

void Variable::backward(const Tensor& gradient, bool retain_graph) const {
  lockstep::backward(std::span(this, 1), std::span(&gradient, 1), retain_graph);
}

void backward(std::span<const Variable> outputs, std::span<const Tensor> gradients,
              bool retain_graph) {
  run_backward(make_roots(outputs, gradients), retain_graph);
}

std::vector<Tensor> grad(std::span<const Variable> outputs, std::span<const Variable> inputs,
                         std::span<const Tensor> gradients, bool retain_graph) {
  std::vector<Tensor> results(inputs.size());
  std::vector<GradientCapture> captures;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    LOCKSTEP_CHECK(inputs[i].requires_grad(), "grad: input {} requires no gradient", i);
    captures.push_back({inputs[i].state()->gradient_edge().get(), &results[i]});
  }
  LOCKSTEP_CHECK(!captures.empty(), "grad: no inputs given");
  run_backward(make_roots(outputs, gradients), retain_graph, captures);
  return results;
}

}  // namespace lockstep
