// What cross-entropy and nll share: shapes, checked targets and class weights. Internal.
#pragma once

#include <vector>

#include "lockstep/kernels/loss_options.h"

namespace lockstep::kernels {

struct ClassTargets {
  int class_axis = 0;                  // of the scores: 1, or 0 for a single row (C)
  std::int64_t rows = 0, classes = 0;  // rows in target's row-major order
  Shape target_shape;
  std::vector<std::int64_t> label;  // per row; kIgnored where the row does not count
  std::vector<double> weight;       // per class; empty: all 1
  double total_weight = 0;          // of the rows that count

  static constexpr std::int64_t kIgnored = -1;
  double weight_of(std::int64_t c) const {
    return weight.empty() ? 1 : weight[static_cast<std::size_t>(c)];
  }
};

namespace cuda {
// The same on a CUDA device, where labels are checked by the kernels.
struct DeviceTargets {
  Tensor scores;  // (rows, classes), contiguous
  Tensor labels;  // (rows), contiguous, in target's row-major order
  Tensor weight;  // (classes) in the dtype of the computation, or undefined
  Shape target_shape;
};
}  // namespace cuda

// Throws Error naming `op` where shapes or dtypes do not fit.
cuda::DeviceTargets to_device_targets(const Tensor& scores, const Tensor& target,
                                      const ClassLossOptions& options, const char* op);
void check_loss_gradient(const Tensor& dloss, const Shape& target, Reduction reduction,
                         const char* op);

// Throws Error naming `op` where shapes, dtypes or a label do not fit.
ClassTargets check_targets(const Tensor& scores, const Tensor& target,
                           const ClassLossOptions& options, const char* op);

// The per-row losses (f64, row order) as the result asked for, in `dtype`.
Tensor reduce_rows(const std::vector<double>& losses, const ClassTargets& targets,
                   Reduction reduction, DType dtype);
// Per row the factor that its gradient is scaled with; 0 in ignored rows.
std::vector<double> row_gradients(const Tensor& dloss, const ClassTargets& targets,
                                  Reduction reduction, const char* op);

}  // namespace lockstep::kernels
