// The end of every path through the graph: a leaf takes its gradient.
#include <limits>

#include "lockstep/autograd/variable_state.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/accumulate.h"

namespace lockstep {
namespace {

// Keeps a gradient that nobody else holds and that lies as the value does; copies otherwise.
Tensor own(const Tensor& dy, const Tensor& value) {
  if (dy.storage().use_count() == 1 && dy.strides() == value.strides() && dy.is_dense()) return dy;
  Tensor grad = empty_like(value);
  copy_elements(grad, dy);
  return grad;
}

// Leaves run as soon as they are ready, before any other node: a gradient is worth most to who
// waits for it right away.
constexpr std::uint64_t kFirst = std::numeric_limits<std::uint64_t>::max();

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const std::shared_ptr<Variable::State>& leaf)
      : Node("accumulate_grad", {}, kFirst), leaf_(leaf) {}

  void apply(const Tensor& dy, Gradients&) override {
    std::shared_ptr<Variable::State> leaf = leaf_.lock();
    if (!leaf) return;  // nobody can see this gradient any more
    LOCKSTEP_CHECK(dy.shape() == leaf->data.shape() && dy.dtype() == leaf->data.dtype(),
                   "backward: a leaf {} {} got a gradient {} {}", leaf->data.dtype(),
                   leaf->data.shape(), dy.dtype(), dy.shape());
    if (leaf->grad.defined()) {
      kernels::accumulate(leaf->grad, dy);
    } else if (leaf->grad_buffer.defined()) {
      copy_elements(leaf->grad_buffer, dy);
      leaf->grad = leaf->grad_buffer;
    } else {
      leaf->grad = own(dy, leaf->data);
    }
    if (leaf->post_hooks.empty()) return;
    Variable variable(leaf);
    const auto hooks = leaf->post_hooks;  // a hook may remove itself or add others
    for (const auto& [id, hook] : hooks) hook(variable);
  }

 private:
  std::weak_ptr<Variable::State> leaf_;
};

}  // namespace

std::shared_ptr<Node> make_accumulator(const std::shared_ptr<Variable::State>& leaf) {
  return std::make_shared<AccumulateGrad>(leaf);
}

}  // namespace lockstep
