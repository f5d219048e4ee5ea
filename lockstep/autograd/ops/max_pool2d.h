// Max pooling in the graph. Formulas: lockstep/kernels/max_pool2d.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/pool2d_window.h"

namespace lockstep {

// x (N,C,H,W). The result is channels-last, or contiguous if `format` says so (before a flatten).
Variable max_pool2d(const Variable& x, const kernels::Pool2dOptions& options,
                    MemoryFormat format = MemoryFormat::kChannelsLast);
// Square windows of `kernel`, side by side.
Variable max_pool2d(const Variable& x, std::int64_t kernel,
                    MemoryFormat format = MemoryFormat::kChannelsLast);

}  // namespace lockstep
