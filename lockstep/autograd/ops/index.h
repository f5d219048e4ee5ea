// Picking by index, sorting. Contract: kernels/index.h. Gradients add up where an index repeats.
#pragma once

#include <utility>

#include "lockstep/autograd/variable.h"

namespace lockstep {

Variable index_select(const Variable& x, std::int64_t axis, const Variable& index);
Variable gather(const Variable& x, std::int64_t axis, const Variable& index);
// Values and indices (i64). NaN is the greatest.
std::pair<Variable, Variable> sort(const Variable& x, std::int64_t axis = -1,
                                   bool descending = false);
std::pair<Variable, Variable> topk(const Variable& x, std::int64_t k, std::int64_t axis = -1,
                                   bool largest = true);

}  // namespace lockstep
