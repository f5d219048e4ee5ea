// Parts of a tensor, as views. The gradient of what was left out is 0.
#pragma once

#include <span>
#include <vector>

#include "lockstep/autograd/variable.h"

namespace lockstep {

// Elements start, start + step, … < end of one axis; negative start and end count from the back.
Variable slice(const Variable& x, std::int64_t axis, std::int64_t start, std::int64_t end,
               std::int64_t step = 1);
Variable select(const Variable& x, std::int64_t axis, std::int64_t index);  // drops the axis
Variable narrow(const Variable& x, std::int64_t axis, std::int64_t start, std::int64_t length);
// Pieces of the given sizes, which must add up to the axis's; or of `size` each, the last smaller.
std::vector<Variable> split(const Variable& x, std::span<const std::int64_t> sizes,
                            std::int64_t axis = 0);
std::vector<Variable> split(const Variable& x, std::int64_t size, std::int64_t axis = 0);
// At most `chunks` pieces of equal size, the last smaller, as PyTorch.
std::vector<Variable> chunk(const Variable& x, std::int64_t chunks, std::int64_t axis = 0);

}  // namespace lockstep
