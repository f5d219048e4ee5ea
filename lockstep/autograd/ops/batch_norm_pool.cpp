#include "lockstep/autograd/ops/batch_norm_pool.h"

#include "lockstep/autograd/ops/batch_norm_statistics.h"
#include "lockstep/autograd/record.h"
#include "lockstep/kernels/batch_norm_pool.h"
#include "lockstep/kernels/cast.h"

namespace lockstep {

Variable batch_norm_relu_max_pool2d(const Variable& x, const Variable& weight, const Variable& bias,
                                    const Tensor& running_mean, const Tensor& running_var,
                                    bool training, double momentum, double eps, std::int64_t kernel,
                                    MemoryFormat format) {
  const auto value = [](const Variable& v) { return v.defined() ? v.data() : Tensor(); };
  const BatchNormStatistics s =
      batch_norm_statistics(x, running_mean, running_var, training, momentum, eps);
  const kernels::BatchNormState state{s.mean, s.inverse_std, value(weight), value(bias), true};
  const kernels::Pool2dOptions window{.kernel = {kernel, kernel}, .stride = {kernel, kernel}};
  kernels::MaxPool2dResult result =
      kernels::batch_norm_pool_forward(x.data(), state, window, format);
  return record("batch_norm_relu_max_pool2d", std::move(result.y), inputs(x, weight, bias),
                [&](const Tensor&) {
                  return [x = SavedTensor(x.data()), gamma = SavedTensor(state.gamma),
                          beta = SavedTensor(state.beta), state, window, taps = result.taps,
                          s](const Tensor& dy, Gradients& dx) {
                    kernels::BatchNormState now = state;
                    now.gamma = gamma.get();
                    now.beta = beta.get();
                    kernels::BatchNormSums sums;
                    if (s.of_batch || dx.needs(1) || dx.needs(2))
                      sums = kernels::batch_norm_pool_backward_sums(dy, taps, x.get(), now, window);
                    dx.set(0, [&] {
                      return kernels::batch_norm_pool_backward(dy, taps, x.get(), now, window, sums,
                                                               s.count);
                    });
                    dx.set(1, [&] {
                      return kernels::cast(kernels::batch_norm_dgamma(sums, now.inverse_std),
                                           now.gamma.dtype());
                    });
                    dx.set(2, [&] { return kernels::cast(sums.dy, now.beta.dtype()); });
                  };
                });
}

}  // namespace lockstep
