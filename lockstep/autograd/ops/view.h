// Other shapes on the same elements. All but reshape, flatten, clone and contiguous give views,
// which share storage and version with x; those copy only where they must (clone: always). Throws
// Error where core's Tensor does. Gradients take the way back.
#pragma once

#include <initializer_list>
#include <span>

#include "lockstep/autograd/variable.h"

namespace lockstep {

Variable view(const Variable& x, const Shape& shape);     // one size may be -1
Variable reshape(const Variable& x, const Shape& shape);  // view where strides allow it
// Axes start to end (both included) become one.
Variable flatten(const Variable& x, std::int64_t start = 0, std::int64_t end = -1);
Variable permute(const Variable& x, std::span<const int> axes);
inline Variable permute(const Variable& x, std::initializer_list<int> axes) {
  return permute(x, std::span<const int>(axes.begin(), axes.size()));
}
Variable transpose(const Variable& x, std::int64_t a, std::int64_t b);
Variable t(const Variable& x);  // of a matrix
Variable squeeze(const Variable& x, std::int64_t axis);
Variable unsqueeze(const Variable& x, std::int64_t axis);
Variable expand(const Variable& x, const Shape& shape);  // dx sums over what was repeated

Variable clone(const Variable& x);
// x itself where it has the format already.
Variable contiguous(const Variable& x, MemoryFormat format = MemoryFormat::kContiguous);
Variable channels_last(const Variable& x);  // of (N,C,H,W)

}  // namespace lockstep
