// cross_entropy.h on CUDA devices. Internal.
#pragma once

#include "lockstep/kernels/class_targets.h"
#include "lockstep/kernels/cross_entropy.h"

namespace lockstep::kernels::cuda {

CrossEntropy cross_entropy_forward(const DeviceTargets& targets, const ClassLossOptions& options);
// (rows, classes). dloss: contiguous, one element or one per row.
Tensor cross_entropy_backward(const Tensor& dloss, const DeviceTargets& targets,
                              const Tensor& row_stats, const ClassLossOptions& options);

}  // namespace lockstep::kernels::cuda
