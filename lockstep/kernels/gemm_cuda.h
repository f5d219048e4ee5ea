// gemm.h on CUDA devices. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels::cuda {

// A product of checked matrices: a (m, k), b (k, n), c (m, n) of one floating dtype on one device,
// none empty, rows of c contiguous. With `batch` each has a leading axis more, of one size.
struct GemmCall {
  Tensor a, b, c;
  bool accumulate = false;  // += instead of =
  Tensor bias = {};         // (n), added to each row; undefined: none
  bool relu = false;        // max(0, …) last
};

// By what gemm_algorithm.h says.
void gemm(const GemmCall& call);

// cuBLASLt; false where it has no kernel for these strides.
bool gemm_library(const GemmCall& call);
// Our own tiled kernel, for any strides.
void gemm_tiled(const GemmCall& call);

}  // namespace lockstep::kernels::cuda
