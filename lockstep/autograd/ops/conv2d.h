// 2-D convolution in the graph. Shapes and formulas: lockstep/kernels/conv2d.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/conv2d.h"

namespace lockstep {

// x (N,C,H,W), w (K,C/groups,R,S), b (K) or undefined. The result is channels-last.
Variable conv2d(const Variable& x, const Variable& w, const Variable& b = {},
                const kernels::Conv2dOptions& options = {});

// relu(conv2d(x, w, b)) as one operation.
Variable conv2d_relu(const Variable& x, const Variable& w, const Variable& b = {},
                     const kernels::Conv2dOptions& options = {});

}  // namespace lockstep
