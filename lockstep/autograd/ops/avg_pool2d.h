// Average pooling in the graph. Formulas: lockstep/kernels/avg_pool2d.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/avg_pool2d.h"

namespace lockstep {

// x (N,C,H,W). The result is channels-last.
Variable avg_pool2d(const Variable& x, const kernels::AvgPool2dOptions& options);
// Square windows of `kernel`, side by side.
Variable avg_pool2d(const Variable& x, std::int64_t kernel);

}  // namespace lockstep
