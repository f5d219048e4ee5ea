// The blocked matrix product that one thread runs. Internal.
#pragma once

#include <cstdint>

namespace lockstep::kernels {

// C (m, n) = A B, or C += A B. Element (i, p) of A is a[i * a_row + p * a_col]; likewise B (k, n).
// Rows of C are contiguous. T is float or double.
template <class T>
struct GemmBlock {
  std::int64_t m, n, k;
  const T *a, *b;
  T* c;
  std::int64_t a_row, a_col, b_row, b_col, c_row;
  bool accumulate;
};

// Every element of C is a sum over k in one order, whatever m, n and the element's place: k is cut
// into blocks of `block_k`, summed from the front in registers, and the blocks added to C in order.
struct GemmKernels {
  std::int64_t tile_m, tile_n;   // C is computed in tiles of this size
  std::int64_t workspace_bytes;  // for packed pieces of A and B, 64-byte aligned
  void (*f32)(const GemmBlock<float>&, void* workspace);
  void (*f64)(const GemmBlock<double>&, void* workspace);
};

// Those for this processor.
const GemmKernels& gemm_kernels();

}  // namespace lockstep::kernels
