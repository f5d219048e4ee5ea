#include "lockstep/autograd/ops/batch_norm.h"

#include "lockstep/autograd/ops/batch_norm_statistics.h"
#include "lockstep/autograd/record.h"
#include "lockstep/kernels/batch_norm.h"
#include "lockstep/kernels/cast.h"

namespace lockstep {
namespace {

Tensor value(const Variable& v) { return v.defined() ? v.data() : Tensor(); }

Variable normalize(const char* name, bool relu, const Variable& x, const Variable& weight,
                   const Variable& bias, const Tensor& running_mean, const Tensor& running_var,
                   bool training, double momentum, double eps) {
  const BatchNormStatistics s =
      batch_norm_statistics(x, running_mean, running_var, training, momentum, eps);
  kernels::BatchNormState state{s.mean, s.inverse_std, value(weight), value(bias), relu};
  return record(name, kernels::batch_norm_forward(x.data(), state), inputs(x, weight, bias),
                [&](const Tensor&) {
                  return [x = SavedTensor(x.data()), gamma = SavedTensor(state.gamma),
                          beta = SavedTensor(state.beta), state, batch = s.of_batch,
                          count = s.count](const Tensor& dy, Gradients& dx) {
                    kernels::BatchNormState now = state;
                    now.gamma = gamma.get();
                    now.beta = beta.get();
                    kernels::BatchNormSums sums;
                    if (batch || dx.needs(1) || dx.needs(2))
                      sums = kernels::batch_norm_backward_sums(dy, x.get(), now);
                    dx.set(0, [&] {
                      return batch ? kernels::batch_norm_backward(dy, x.get(), now, sums, count)
                                   : kernels::batch_norm_backward_given(dy, x.get(), now);
                    });
                    dx.set(1, [&] {
                      return kernels::cast(kernels::batch_norm_dgamma(sums, now.inverse_std),
                                           now.gamma.dtype());
                    });
                    dx.set(2, [&] { return kernels::cast(sums.dy, now.beta.dtype()); });
                  };
                });
}

}  // namespace

Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const Tensor& running_mean, const Tensor& running_var, bool training,
                    double momentum, double eps) {
  return normalize("batch_norm", false, x, weight, bias, running_mean, running_var, training,
                   momentum, eps);
}

Variable batch_norm_relu(const Variable& x, const Variable& weight, const Variable& bias,
                         const Tensor& running_mean, const Tensor& running_var, bool training,
                         double momentum, double eps) {
  return normalize("batch_norm_relu", true, x, weight, bias, running_mean, running_var, training,
                   momentum, eps);
}

}  // namespace lockstep
