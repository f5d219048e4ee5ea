// Which statistics a batch norm uses, and the update of the running ones. Internal to ops.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep {

struct BatchNormStatistics {
  Tensor mean, inverse_std;
  std::int64_t count = 0;  // values of the batch per channel; 0 where running statistics are used
  bool of_batch = false;
};

// As batch_norm.h says; the running statistics may be updated.
BatchNormStatistics batch_norm_statistics(const Variable& x, const Tensor& running_mean,
                                          const Tensor& running_var, bool training, double momentum,
                                          double eps);

}  // namespace lockstep
