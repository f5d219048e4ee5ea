#include "lockstep/autograd/node.h"

#include <utility>

namespace lockstep {
namespace {

thread_local std::vector<std::shared_ptr<Node>>* pending_unlinks = nullptr;

}  // namespace

void Node::unlink(std::span<std::shared_ptr<Node>> inputs) noexcept {
  bool chained = false;
  for (auto& input : inputs) chained = chained || (input && !input->inputs_.empty());
  if (!chained) return;
  if (pending_unlinks) {
    for (auto& input : inputs)
      if (input) pending_unlinks->push_back(std::move(input));
    return;
  }
  std::vector<std::shared_ptr<Node>> pending;
  pending_unlinks = &pending;
  for (auto& input : inputs)
    if (input) pending.push_back(std::move(input));
  while (!pending.empty()) {
    std::shared_ptr<Node> next = std::move(pending.back());
    pending.pop_back();
    next.reset();  // its destructor, if it runs, adds to `pending`
  }
  pending_unlinks = nullptr;
}

}  // namespace lockstep
