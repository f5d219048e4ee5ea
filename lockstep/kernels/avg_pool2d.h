// Average pooling of images, over windows of one size or over as many windows as wanted.
//
//   avg_pool2d:          y = sum of x over the window / D, windows as in pool2d_window.h
//     D = positions inside the padded image (count_include_pad), or inside the image, or `divisor`
//   adaptive_avg_pool2d: window p along H is [floor(p H / P), ceil((p + 1) H / P)), likewise W
//   dx = sum over windows of dy / D
//
// dtypes f32, f64, f16, bf16; sums in f32 (f64 for f64). Results are new and channels-last; x and
// dy of another layout are copied (image_layout.h counts that).
#pragma once

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/pool2d_window.h"

namespace lockstep::kernels {

struct AvgPool2dOptions {
  Pool2dOptions window;
  bool count_include_pad = true;
  std::int64_t divisor = 0;  // 0: as counted
};

Tensor avg_pool2d_forward(const Tensor& x, const AvgPool2dOptions& options);
Tensor avg_pool2d_backward(const Tensor& dy, const Shape& x, const AvgPool2dOptions& options);

// Output size (P, Q), both at least 1.
Tensor adaptive_avg_pool2d_forward(const Tensor& x, std::int64_t p, std::int64_t q);
Tensor adaptive_avg_pool2d_backward(const Tensor& dy, const Shape& x);

}  // namespace lockstep::kernels
