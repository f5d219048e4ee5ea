// What cuBLASLt's handles stand for.
#pragma once

#include <cstdint>

#include "vgpu/include/cublasLt.h"

struct cublasLtContext {
  int device;
};

struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  std::int32_t order;
  std::uint64_t rows, cols;
  std::int64_t ld;
  std::int32_t batches;
  std::int64_t batch_stride;

  std::int64_t offset(std::uint64_t row, std::uint64_t col, std::int64_t batch) const {
    const auto r = static_cast<std::int64_t>(row), c = static_cast<std::int64_t>(col);
    return batch * batch_stride + (order == CUBLASLT_ORDER_ROW ? r * ld + c : c * ld + r);
  }
  std::size_t element_bytes() const { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
  // From the first to the last element.
  std::size_t extent() const {
    if (rows == 0 || cols == 0 || batches == 0) return 0;
    return (static_cast<std::size_t>(offset(rows - 1, cols - 1, batches - 1)) + 1) *
           element_bytes();
  }
  bool is_possible() const {
    const auto inner = static_cast<std::int64_t>(order == CUBLASLT_ORDER_ROW ? cols : rows);
    return ld >= inner && batches > 0;
  }
};

struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t pointer_mode, trans_a, trans_b;
  std::uint32_t epilogue;
  void* bias;
  std::int64_t bias_batch_stride;
  void* aux;
  std::int64_t aux_ld, aux_batch_stride;
  std::int32_t bias_type;  // -1: that of D

  bool has(std::uint32_t part) const { return (epilogue & part) == part; }
  bool adds_bias() const { return has(CUBLASLT_EPILOGUE_BIAS); }
  bool sums_bias_gradient() const {
    return has(16) || has(CUBLASLT_EPILOGUE_BGRADA) || has(CUBLASLT_EPILOGUE_BGRADB);
  }
  bool uses_aux() const { return has(128); }
  // Reads what the forward pass left there; without it the auxiliary memory is written.
  bool reads_aux() const { return has(8) || has(64); }
};

struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace;
  std::uint32_t alignment[4];  // of A, B, C, D
};
