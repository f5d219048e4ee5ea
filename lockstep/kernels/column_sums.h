// Sums over the rows of a matrix: the bias gradient of linear and conv2d. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// sum[c] = sum over r of x[r][c] for `rows` contiguous rows of C elements at x, C being sum's
// length. sum and x have one floating dtype; 64 rows at a time are added in f32 (f64 for f64),
// these sums in f64; on CUDA devices as in reduction.h. One order whatever the number of threads.
void column_sums(const Tensor& x, std::int64_t rows, const Tensor& sum);

}  // namespace lockstep::kernels
