// Tensors put side by side, and borders around one.
#pragma once

#include <span>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// Along an existing axis; the other sizes must agree. dtypes promote. Channels-last if the first
// 4-D input is.
Tensor cat(std::span<const Tensor> tensors, std::int64_t axis);

// Borders of a constant. `borders` as PyTorch: (before, after) of the last axis, then of the last
// but one, and so on; none may be negative. Keeps channels-last.
Tensor pad(const Tensor& x, const Shape& borders, double value);
// The part of dy inside the borders (a view).
Tensor unpad(const Tensor& dy, const Shape& borders);

}  // namespace lockstep::kernels
