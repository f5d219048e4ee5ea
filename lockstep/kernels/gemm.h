// C = A B on strided matrices: what matmul, linear and the im2col convolution are made of.
// Internal: not for embedders.
#pragma once

#include <cstdint>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// c = a b, or c += a b, for matrices a (m, k), b (k, n), c (m, n) of one floating dtype. a and b
// may have any strides; rows of c must be contiguous. No aliasing of c. The half types accumulate
// in f32 and round once (with accumulate: once more for the sum). In deterministic mode the bits do
// not depend on the number of threads.
void gemm(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate = false);

// The parts of gemm() that a build chooses: gemm_onednn.cpp or gemm_builtin.cpp. False where there
// is no such kernel for these strides on this processor; gemm() then finds another way.
bool gemm_f32_library(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate);
bool gemm_bf16_library(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate);

}  // namespace lockstep::kernels
