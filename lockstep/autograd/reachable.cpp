#include "lockstep/autograd/reachable.h"

#include <unordered_set>

#include "lockstep/autograd/variable_state.h"

namespace lockstep {

std::vector<bool> reachable(std::span<const Variable> outputs, std::span<const Variable> leaves) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> stack;
  const auto visit = [&](const Node* node) {
    if (node && seen.insert(node).second) stack.push_back(node);
  };
  for (const Variable& y : outputs)
    if (y.defined()) visit(y.state()->gradient_edge().get());
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const auto& input : node->inputs()) visit(input.get());
  }
  std::vector<bool> result;
  result.reserve(leaves.size());
  for (const Variable& leaf : leaves)
    result.push_back(leaf.defined() && seen.contains(leaf.state()->gradient_edge().get()));
  return result;
}

}  // namespace lockstep
