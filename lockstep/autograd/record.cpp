#include "lockstep/autograd/record.h"

#include <atomic>

#include "lockstep/autograd/variable_state.h"
#include "lockstep/core/check.h"

namespace lockstep {

std::uint64_t next_sequence() {
  static constinit std::atomic<std::uint64_t> counter{1};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

void SavedTensor::changed() const {
  throw InPlaceChangeError(
      fmt::format("a tensor of shape {} needed for backward was changed in place: it is at version "
                  "{}, saved at version {}",
                  tensor_.shape(), tensor_.version(), version_));
}

namespace internal {

void throw_released(const char* name) {
  throw Error(fmt::format(
      "backward: the graph at '{}' was already used and dropped; pass retain_graph = true to the "
      "first backward to go through it a second time",
      name));
}

bool wants_record(const char* name, std::span<const Variable* const> inputs) {
  if (!is_grad_enabled()) return false;
  bool wanted = false;
  for (const Variable* v : inputs) {
    const Variable::State* s = v->state().get();
    if (s && s->gradient_edge()) wanted = true;
  }
  if (!wanted) return false;
  for (const Variable* v : inputs) {
    const Variable::State* s = v->state().get();
    if (!s) continue;
    LOCKSTEP_CHECK(!s->inference,
                   "{}: an input of shape {} was made in inference mode and can't be part of a "
                   "graph; clone it outside of that mode",
                   name, s->data.shape());
    LOCKSTEP_CHECK(!s->is_view || !s->grad_fn || s->view_version == s->data.version(),
                   "{}: an input of shape {} is a view of a tensor that was changed in place after "
                   "the view was made; make the view again",
                   name, s->data.shape());
  }
  return true;
}

std::uint64_t next_node_sequence() { return next_sequence(); }

void link(std::span<std::shared_ptr<Node>> edges, std::span<const Variable* const> inputs) {
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (const auto& s = inputs[i]->state()) edges[i] = s->gradient_edge();
}

Variable make_result(Tensor result, std::span<const Variable* const> inputs,
                     std::shared_ptr<Node> node) {
  auto state = std::make_shared<Variable::State>(std::move(result));
  state->inference = is_inference_mode();
  if (!inputs.empty() && inputs[0]->defined() && state->data.defined() &&
      state->data.shares_storage_with(inputs[0]->data())) {
    state->is_view = true;
    state->view_version = state->data.version();
  }
  state->grad_fn = std::move(node);
  return Variable(std::move(state));
}

void check_in_place(const char* name, const Variable& x) {
  const Variable::State& s = *x.state();
  LOCKSTEP_CHECK(!s.accumulator,
                 "{}: a leaf of shape {} that requires a gradient can't be changed in place while "
                 "the graph is recorded; use a NoGradGuard or a copy",
                 name, s.data.shape());
  LOCKSTEP_CHECK(
      !s.is_view,
      "{}: a variable of shape {} is a view of another one and can't be changed in place "
      "while the graph is recorded; use a copy",
      name, s.data.shape());
}

void rebase(Variable& x, std::shared_ptr<Node> node) {
  Variable::State& s = *x.state();
  s.data.bump_version();
  s.grad_fn = std::move(node);
}

}  // namespace internal
}  // namespace lockstep
