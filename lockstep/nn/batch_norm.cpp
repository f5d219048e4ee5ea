#include "lockstep/nn/batch_norm.h"

#include "lockstep/autograd/ops/batch_norm.h"
#include "lockstep/autograd/ops/batch_norm_pool.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/nn/init.h"

namespace lockstep::nn {

BatchNormImpl::BatchNormImpl(const BatchNormOptions& given, const char* name) : options(given) {
  const std::int64_t channels = options.num_features();
  LOCKSTEP_CHECK(channels >= 1, "{}: num_features must be at least 1, got {}", name, channels);
  if (options.affine()) {
    weight = register_parameter("weight", empty({channels}));
    bias = register_parameter("bias", empty({channels}));
    reset_parameters();
  }
  if (options.track_running_stats()) {
    running_mean = register_buffer("running_mean", empty({channels}));
    running_var = register_buffer("running_var", empty({channels}));
    num_batches_tracked = register_buffer("num_batches_tracked", zeros(Shape{}, {.dtype = kI64}));
    reset_running_stats();
  }
}

void BatchNormImpl::reset_parameters() {
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

void BatchNormImpl::reset_running_stats() {
  if (!options.track_running_stats()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  zero_(num_batches_tracked.data());
}

template <class Op>
Variable BatchNormImpl::with_statistics(const Op& op) {
  if (!options.track_running_stats()) return op(Tensor(), Tensor(), true, 0.0);
  if (!is_training()) return op(running_mean.data(), running_var.data(), false, 0.0);
  const Tensor& batches = num_batches_tracked.data();
  // On a CUDA device item() waits: only without a momentum is the number needed.
  const double momentum = options.momentum() ? *options.momentum() : 1.0 / (batches.item() + 1);
  Variable y = op(running_mean.data(), running_var.data(), true, momentum);
  // After the operation: a batch that it refused does not count.
  kernels::add_into(batches, batches, 1);
  return y;
}

Variable BatchNormImpl::normalize(const Variable& x, bool relu) {
  check_input(x);
  return with_statistics(
      [&](const Tensor& mean, const Tensor& var, bool training, double momentum) {
        const auto op = relu ? batch_norm_relu : batch_norm;
        return op(x, weight, bias, mean, var, training, momentum, options.eps());
      });
}

Variable BatchNorm2dImpl::forward_relu_max_pool(const Variable& x, std::int64_t kernel,
                                                MemoryFormat format) {
  check_input(x);
  return with_statistics(
      [&](const Tensor& mean, const Tensor& var, bool training, double momentum) {
        return batch_norm_relu_max_pool2d(x, weight, bias, mean, var, training, momentum,
                                          options.eps(), kernel, format);
      });
}

void BatchNorm1dImpl::check_input(const Variable& x) const {
  LOCKSTEP_CHECK((x.dim() == 2 || x.dim() == 3) && x.size(1) == options.num_features(),
                 "BatchNorm1d: expected x (N, C) or (N, C, L) with C = {} but got shape {}",
                 options.num_features(), x.shape());
}

void BatchNorm2dImpl::check_input(const Variable& x) const {
  LOCKSTEP_CHECK(x.dim() == 4 && x.size(1) == options.num_features(),
                 "BatchNorm2d: expected x (N, C, H, W) with C = {} but got shape {}",
                 options.num_features(), x.shape());
}

}  // namespace lockstep::nn
