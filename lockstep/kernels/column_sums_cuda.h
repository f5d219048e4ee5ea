// column_sums.h on CUDA devices. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels::cuda {

// `rows` and sum's length are at least 1. Sums in f32 (f64 for f64), in one order.
void column_sums(const Tensor& x, std::int64_t rows, const Tensor& sum);

}  // namespace lockstep::kernels::cuda
