// Which leaves a graph leads to.
#pragma once

#include <span>
#include <vector>

#include "lockstep/autograd/variable.h"

namespace lockstep {

// result[i]: whether a backward pass from `outputs` would reach leaves[i].
std::vector<bool> reachable(std::span<const Variable> outputs, std::span<const Variable> leaves);

}  // namespace lockstep
