// layer_norm.h on CUDA devices. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels::cuda {

// x (rows, D) and y are contiguous, with elements; weight and bias have D elements of any floating
// dtype, or are undefined; mean and rstd (rows) are f32 (f64 for f64). A row stays on the chip.
void layer_norm_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                     const Tensor& y, const Tensor& mean, const Tensor& rstd);

// dx, dweight and dbias as in layer_norm.h; undefined ones are not wanted, the others are
// contiguous. x may be undefined where only dbias is wanted, and mean and rstd then too. Up to 8192
// elements a row, dy and x are read once.
void layer_norm_rows_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                              const Tensor& mean, const Tensor& rstd, const Tensor& dx,
                              const Tensor& dweight, const Tensor& dbias);

}  // namespace lockstep::kernels::cuda
