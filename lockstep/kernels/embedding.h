// Rows of a table by index.
#pragma once

#include <cstdint>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// table (V, D) of any dtype, indices of any shape, i64, i32 or u8: y (indices' shape, D), new and
// contiguous (=). y[j] = table[indices[j]]. Throws Error for an index outside 0 … V-1: names its
// position, the index, V.
Tensor embedding_forward(const Tensor& table, const Tensor& indices);

// dtable[v] = sum of dy[j] over indices[j] == v, added in the order of j whatever the number of
// threads, in f32 for the half types; 0 for unused rows and for row padding_idx (-1: none). New
// (V, D) tensor (=) of dy's dtype.
Tensor embedding_backward(const Tensor& dy, const Tensor& indices, std::int64_t rows,
                          std::int64_t padding_idx);

}  // namespace lockstep::kernels
