// What cuDNN's handles stand for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vgpu/include/cudnn.h"
#include "vgpu/runtime/elements.h"

struct cudnnContext {
  int device;
  cudaStream_t stream;
};

// A 4-D array with any strides, in elements.
struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  std::int64_t n_stride = 0, c_stride = 0, h_stride = 0, w_stride = 0;

  void set(cudnnTensorFormat_t format) {
    const bool last = format == CUDNN_TENSOR_NHWC;
    n_stride = c * h * w;
    c_stride = last ? 1 : h * w;
    h_stride = last ? w * c : w;
    w_stride = last ? c : 1;
  }
  std::int64_t count() const { return n * c * h * w; }
  std::int64_t at(std::int64_t i, std::int64_t j, std::int64_t y, std::int64_t x) const {
    return i * n_stride + j * c_stride + y * h_stride + x * w_stride;
  }
  bool is_dense() const { return count() == 0 || at(n - 1, c - 1, h - 1, w - 1) + 1 == count(); }
};

// (K, C / groups, R, S), held as a tensor.
struct cudnnFilterStruct {
  cudnnTensorStruct tensor;
};

struct cudnnConvolutionStruct {
  std::int64_t pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t groups = 1;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace vgpu {

inline ElementType element_type(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return ElementType::kDouble;
    case CUDNN_DATA_HALF:
      return ElementType::kHalf;
    case CUDNN_DATA_BFLOAT16:
      return ElementType::kBfloat16;
    default:
      return ElementType::kFloat;
  }
}

}  // namespace vgpu
