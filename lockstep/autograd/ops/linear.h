// The fully connected layer in the graph. Shapes and formulas: lockstep/kernels/linear.h.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

// x (…,I) w^T + b, with w (O,I) and b (O) or undefined.
Variable linear(const Variable& x, const Variable& w, const Variable& b = {});

// relu(linear(x, w, b)) as one operation.
Variable linear_relu(const Variable& x, const Variable& w, const Variable& b = {});

}  // namespace lockstep
