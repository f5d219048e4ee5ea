// The window loops of max pooling over (N, H, W, C) in memory. Internal.
#pragma once

#include <cstdint>

#include "lockstep/core/dtype.h"

namespace lockstep::kernels {

struct PoolWindows {
  std::int64_t c, h, w, oh, ow;
  std::int64_t kernel[2], stride[2], padding[2], dilation[2];
};

// Where element (n, oy, ox, c) of y or dy lies, in elements.
struct PooledStrides {
  std::int64_t n, y, x, c;
};

struct MaxPoolKernels {
  // Rows [begin, end) of the N * OH output rows; `taps` (N, OH, OW, C) gets the place of the
  // maximum in its window, ky * KW + kx.
  void (*forward)(DType, const void* x, void* y, std::uint8_t* taps, const PoolWindows&,
                  const PooledStrides&, std::int64_t begin, std::int64_t end);
  // Images [begin, end): dx = dy at the maximum, summed where windows overlap, else 0. dx has
  // dtype f32 or f64 where windows overlap, else dy's.
  void (*backward)(DType, const void* dy, const std::uint8_t* taps, void* dx, const PoolWindows&,
                   const PooledStrides&, bool overlap, std::int64_t begin, std::int64_t end);
};

const MaxPoolKernels& max_pool_kernels();

}  // namespace lockstep::kernels
