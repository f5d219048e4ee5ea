// The product itself, on memory that has been checked.
#pragma once

#include "vgpu/cublaslt/descriptors.h"
#include "vgpu/runtime/elements.h"

namespace vgpu {

// All that a call names, by value: the descriptors may be gone when the stream comes to it.
struct Matmul {
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t a_layout, b_layout, c_layout, d_layout;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  double alpha = 1, beta = 0;                                  // of the host
  const void *device_alpha = nullptr, *device_beta = nullptr;  // in place of them if not null

  std::uint64_t m() const { return d_layout.rows; }
  std::uint64_t n() const { return d_layout.cols; }
  std::uint64_t k() const { return desc.trans_a == CUBLAS_OP_N ? a_layout.cols : a_layout.rows; }
  // Of the bias, or of its gradient.
  std::uint64_t bias_length() const { return desc.has(CUBLASLT_EPILOGUE_BGRADB) ? n() : m(); }
  std::size_t aux_bytes() const;
};

ElementType element_type(cudaDataType_t type);
ElementType bias_type(const Matmul& call);

// f16, bf16 and f32 in f32, f64 in f64; sums run over k in order.
void multiply(const Matmul& call);

}  // namespace vgpu
