// Average pooling to a given size, in the graph. Formulas: lockstep/kernels/avg_pool2d.h.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

// x (N,C,H,W) to (N,C,height,width). The result is channels-last.
Variable adaptive_avg_pool2d(const Variable& x, std::int64_t height, std::int64_t width);

}  // namespace lockstep
