// Products of matrices and of batches of them.
//
//   y[…,i,j] = sum over p of a[…,i,p] b[…,p,j]
//   da = dy b^T,  db = a^T dy, summed over the axes that were broadcast
//
// a (…,M,K) and b (…,K,N) of one floating dtype in any layout, their leading axes broadcast; a
// vector is a row as a, a column as b, and its axis is missing from y. Sums in f32 (f64 for f64),
// in one order whatever the number of threads in deterministic mode. All results are new (=).
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// Throws Error naming both shapes where they don't fit.
Tensor matmul_forward(const Tensor& a, const Tensor& b);
Tensor matmul_backward_a(const Tensor& dy, const Tensor& a, const Tensor& b);
Tensor matmul_backward_b(const Tensor& dy, const Tensor& a, const Tensor& b);

// The strict form: a (B,M,K), b (B,K,N), nothing broadcast.
Tensor bmm_forward(const Tensor& a, const Tensor& b);

}  // namespace lockstep::kernels
