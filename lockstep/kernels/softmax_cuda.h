// softmax.h's functions on rows in CUDA memory. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels::cuda {

// x, dy, y and dx: contiguous (rows, length) of one floating dtype, with at least one element. The
// results are written (=).
void softmax_rows(const Tensor& x, const Tensor& y, bool log);
void softmax_rows_backward(const Tensor& dy, const Tensor& y, const Tensor& dx, bool log);

}  // namespace lockstep::kernels::cuda
