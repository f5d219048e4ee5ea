// The row loops of batch norm over a matrix (rows, C), C contiguous. Internal.
#pragma once

#include <cstdint>

#include "lockstep/core/dtype.h"

namespace lockstep::kernels {

// What y = relu?((x - mean) * scale + shift) needs per channel; elements are f32, or f64 for f64
// tensors.
struct BatchNormChannels {
  const void *mean, *scale, *shift;
  bool relu;
};

struct BatchNormKernels {
  // mean[c] and m2[c], the sum of squared deviations from it. `scratch` holds 3 C elements of the
  // computing type.
  void (*moments)(DType, const void* x, std::int64_t rows, std::int64_t c, void* scratch,
                  double* mean, double* m2);
  void (*apply)(DType, const void* x, void* y, std::int64_t rows, std::int64_t c,
                const BatchNormChannels&);
  // sum_dy[c] and sum_dy_xmu[c] of dy and of dy * (x - mean), dy being 0 where ReLU cut y off.
  void (*backward_sums)(DType, const void* x, const void* dy, std::int64_t rows, std::int64_t c,
                        const BatchNormChannels&, void* scratch, double* sum_dy,
                        double* sum_dy_xmu);
  // dx = dy * k[0][c] + (x - mean) * k[1][c] + k[2][c], dy as above.
  void (*backward_apply)(DType, const void* x, const void* dy, void* dx, std::int64_t rows,
                         std::int64_t c, const BatchNormChannels&, const void* const k[3]);
};

const BatchNormKernels& batch_norm_kernels();

}  // namespace lockstep::kernels
