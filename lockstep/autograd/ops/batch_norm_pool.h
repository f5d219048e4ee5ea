// Batch norm, ReLU and max pooling as one operation. Formulas: lockstep/kernels/batch_norm_pool.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/max_pool2d.h"

namespace lockstep {

// max_pool2d(batch_norm_relu(x, …), kernel, format) for square windows side by side: the same
// values and gradients, without the large tensor between. x (N,C,H,W); the others as in
// batch_norm.h.
Variable batch_norm_relu_max_pool2d(const Variable& x, const Variable& weight, const Variable& bias,
                                    const Tensor& running_mean, const Tensor& running_var,
                                    bool training, double momentum, double eps, std::int64_t kernel,
                                    MemoryFormat format = MemoryFormat::kChannelsLast);

}  // namespace lockstep
