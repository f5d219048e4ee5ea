// What max and average pooling have in common: how windows lie on an image.
#pragma once

#include "lockstep/core/shape.h"

namespace lockstep::kernels {

struct Pool2dOptions {
  std::int64_t kernel[2] = {2, 2};
  std::int64_t stride[2] = {2, 2};
  std::int64_t padding[2] = {0, 0};
  std::int64_t dilation[2] = {1, 1};  // max pooling only
  bool ceil_mode = false;             // windows may begin inside and end beyond the padded image
};

// (N, C, P, Q) for images (N, C, H, W):
//   P = floor or ceil((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1,
// one less where, in ceil mode, the last window would begin in the padding behind the image. Throws
// Error naming `op` where a size is not positive, padding exceeds half the kernel, or the window is
// larger than the padded image.
Shape pool2d_shape(const Shape& x, const Pool2dOptions& options, const char* op);

}  // namespace lockstep::kernels
