// cat, stack and pad. Contract: kernels/join.h. Gradients are the parts of dy that came from each
// input, in its dtype.
#pragma once

#include <span>
#include <vector>

#include "lockstep/autograd/variable.h"

namespace lockstep {

Variable cat(std::span<const Variable> parts, std::int64_t axis = 0);
inline Variable cat(const std::vector<Variable>& parts, std::int64_t axis = 0) {
  return cat(std::span<const Variable>(parts), axis);
}
// Along a new axis.
Variable stack(std::span<const Variable> parts, std::int64_t axis = 0);
inline Variable stack(const std::vector<Variable>& parts, std::int64_t axis = 0) {
  return stack(std::span<const Variable>(parts), axis);
}
// Borders (before, after) of the last axis, then of the last but one, …
Variable pad(const Variable& x, const Shape& borders, double value = 0);

}  // namespace lockstep
