// Matrix products in the graph. Shapes and formulas: lockstep/kernels/matmul.h.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

// a (…,M,K) times b (…,K,N), vectors and broadcast batches as PyTorch's matmul has them.
Variable matmul(const Variable& a, const Variable& b);

// Strictly (M,K) times (K,N).
Variable mm(const Variable& a, const Variable& b);

}  // namespace lockstep
