// Batch norm, ReLU and max pooling in one: y = max over the window of relu(norm(x)), without the
// large tensor between. Formulas and dtypes: batch_norm.h and max_pool2d.h; the same values and
// gradients as one after the other.
//
// Windows lie side by side: kernel = stride, no padding, no dilation, no ceil mode, at most 256
// positions; other windows are an Error. The statistics of x come from batch_norm_moments; the
// state's `relu` has to be true.
#pragma once

#include "lockstep/kernels/batch_norm.h"
#include "lockstep/kernels/max_pool2d.h"

namespace lockstep::kernels {

// Whether windows lie side by side.
bool is_tiling(const Pool2dOptions& options);

MaxPool2dResult batch_norm_pool_forward(const Tensor& x, const BatchNormState& state,
                                        const Pool2dOptions& options,
                                        MemoryFormat format = MemoryFormat::kChannelsLast);

// dy is the gradient of the pooled result.
BatchNormSums batch_norm_pool_backward_sums(const Tensor& dy, const Tensor& taps, const Tensor& x,
                                            const BatchNormState& state,
                                            const Pool2dOptions& options);
// dx with the statistics of x and `sums` over all `count` values that made them; count 0: with
// given statistics.
Tensor batch_norm_pool_backward(const Tensor& dy, const Tensor& taps, const Tensor& x,
                                const BatchNormState& state, const Pool2dOptions& options,
                                const BatchNormSums& sums, std::int64_t count);

}  // namespace lockstep::kernels
