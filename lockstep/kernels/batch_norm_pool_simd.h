// The loops of batch norm with ReLU and max pooling behind it, over windows side by side. Internal.
#pragma once

#include "lockstep/kernels/batch_norm_simd.h"
#include "lockstep/kernels/max_pool2d_simd.h"

namespace lockstep::kernels {

// All work on rows [begin, end) of the N * OH rows of windows.
struct BatchNormPoolKernels {
  void (*forward)(DType, const void* x, void* y, std::uint8_t* taps, const PoolWindows&,
                  const PooledStrides&, const BatchNormChannels&, std::int64_t begin,
                  std::int64_t end);
  // As batch_norm_simd.h's backward_sums; `scratch` holds 2 C elements.
  void (*backward_sums)(DType, const void* x, const void* dy, const std::uint8_t* taps,
                        const PoolWindows&, const PooledStrides&, const BatchNormChannels&,
                        void* scratch, double* sum_dy, double* sum_dy_xmu, std::int64_t begin,
                        std::int64_t end);
  // As backward_apply; pixels right of and below all windows belong to the last ones.
  void (*backward_apply)(DType, const void* x, const void* dy, const std::uint8_t* taps, void* dx,
                         const PoolWindows&, const PooledStrides&, const BatchNormChannels&,
                         const void* const k[3], std::int64_t begin, std::int64_t end);
};

const BatchNormPoolKernels& batch_norm_pool_kernels();

}  // namespace lockstep::kernels
