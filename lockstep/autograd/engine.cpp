#include "lockstep/autograd/engine.h"

#include <algorithm>
#include <unordered_map>

#include "lockstep/autograd/grad_mode.h"
#include "lockstep/autograd/saved_tensor.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/accumulate.h"

namespace lockstep {
namespace {

// A node in this pass: how many users of its output are still to run, and the sum of their
// gradients.
struct Task {
  std::int64_t waiting = 0;
  Tensor gradient;
};

using Tasks = std::unordered_map<Node*, Task>;

void add_gradient(Tensor& sum, Tensor gradient) {
  if (!gradient.defined()) return;
  if (!sum.defined()) {
    sum = std::move(gradient);
    return;
  }
  // A gradient that others hold too (an addition hands one on to both inputs) must not be written.
  if (sum.storage().use_count() > 1 || !sum.is_dense()) sum = sum.clone();
  kernels::accumulate(sum, gradient);
}

Tasks count_users(std::span<const BackwardRoot> roots) {
  Tasks tasks;
  std::vector<Node*> stack;
  for (const BackwardRoot& root : roots)
    if (tasks.try_emplace(root.node.get()).second) stack.push_back(root.node.get());
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const auto& input : node->inputs()) {
      if (!input) continue;
      auto [it, is_new] = tasks.try_emplace(input.get());
      ++it->second.waiting;
      if (is_new) stack.push_back(input.get());
    }
  }
  return tasks;
}

using Callbacks = std::vector<std::function<void()>>;

// Those of the innermost pass that runs on this thread.
thread_local Callbacks* pass_callbacks = nullptr;

class PassScope {
 public:
  PassScope() : before_(pass_callbacks) { pass_callbacks = &callbacks; }
  ~PassScope() { pass_callbacks = before_; }

  Callbacks callbacks;

 private:
  Callbacks* before_;
};

bool runs_later(const Node* a, const Node* b) { return a->sequence() < b->sequence(); }

Tensor call_hooks(Node& node, Tensor gradient) {
  if (node.hooks().empty()) return gradient;
  const std::vector<Node::HookEntry> hooks = node.hooks();  // one may remove itself or add others
  for (const Node::HookEntry& entry : hooks)
    if (Tensor replaced = entry.hook(gradient); replaced.defined()) gradient = std::move(replaced);
  return gradient;
}

void run_node(Node& node, const Tensor& gradient, Gradients& dx) {
  try {
    node.apply(gradient, dx);
  } catch (const InPlaceChangeError& e) {
    throw Error(fmt::format("backward of '{}': {}", node.name(), e.what()));
  }
}

}  // namespace

void run_backward(std::span<const BackwardRoot> roots, bool retain_graph,
                  std::span<const GradientCapture> captures) {
  NoGradGuard no_grad;
  PassScope pass;
  Tasks tasks = count_users(roots);
  std::vector<Node*> ready;
  for (const BackwardRoot& root : roots) {
    Task& task = tasks[root.node.get()];
    const bool queued = std::find(ready.begin(), ready.end(), root.node.get()) != ready.end();
    if (task.waiting == 0 && !queued) ready.push_back(root.node.get());
    add_gradient(task.gradient, root.gradient);
  }
  std::make_heap(ready.begin(), ready.end(), runs_later);
  std::vector<Tensor> input_gradients;
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), runs_later);
    Node* node = ready.back();
    ready.pop_back();
    Tensor gradient = std::move(tasks[node].gradient);
    if (gradient.defined()) gradient = call_hooks(*node, std::move(gradient));
    for (const GradientCapture& capture : captures)
      if (capture.node == node) *capture.result = gradient;
    const bool is_leaf = node->inputs().empty();
    input_gradients.assign(node->inputs().size(), {});
    Gradients dx(node->inputs(), input_gradients);
    if (gradient.defined() && !(is_leaf && !captures.empty())) run_node(*node, gradient, dx);
    gradient = {};
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      Node* input = node->inputs()[i].get();
      if (!input) continue;
      Task& task = tasks[input];
      add_gradient(task.gradient, std::move(input_gradients[i]));
      if (--task.waiting > 0) continue;
      ready.push_back(input);
      std::push_heap(ready.begin(), ready.end(), runs_later);
    }
    if (!retain_graph) node->release();
  }
  for (std::size_t i = 0; i < pass.callbacks.size(); ++i) {
    const std::function<void()> callback = pass.callbacks[i];  // may queue others
    callback();
  }
}

void run_after_backward(std::function<void()> callback) {
  LOCKSTEP_CHECK(pass_callbacks, "run_after_backward: no backward pass runs on this thread");
  pass_callbacks->push_back(std::move(callback));
}

}  // namespace lockstep
