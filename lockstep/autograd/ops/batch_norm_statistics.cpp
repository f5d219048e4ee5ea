#include "lockstep/autograd/ops/batch_norm_statistics.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/batch_norm.h"

namespace lockstep {

BatchNormStatistics batch_norm_statistics(const Variable& x, const Tensor& running_mean,
                                          const Tensor& running_var, bool training, double momentum,
                                          double eps) {
  LOCKSTEP_CHECK(running_mean.defined() == running_var.defined(),
                 "batch_norm: expected both running statistics or none");
  if (!training && running_mean.defined()) {
    // Copies: training may change the running ones before backward comes.
    return {running_mean.clone(), kernels::batch_norm_inverse_std(running_var, eps), 0, false};
  }
  const kernels::BatchNormMoments moments = kernels::batch_norm_moments(x.data());
  LOCKSTEP_CHECK(
      moments.count != 1,
      "batch_norm: expected more than one value per channel in training but got an input "
      "of shape {}",
      x.shape());
  if (training && running_mean.defined())
    kernels::batch_norm_update_running(running_mean, running_var, moments, momentum);
  return {moments.mean, kernels::batch_norm_inverse_std(moments.var, eps), moments.count, true};
}

}  // namespace lockstep
