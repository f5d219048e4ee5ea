#include "lockstep/autograd/ops/avg_pool2d.h"

#include "lockstep/autograd/record.h"

namespace lockstep {

Variable avg_pool2d(const Variable& x, const kernels::AvgPool2dOptions& options) {
  return record("avg_pool2d", kernels::avg_pool2d_forward(x.data(), options), inputs(x),
                [&](const Tensor&) {
                  return [shape = x.shape(), options](const Tensor& dy, Gradients& dx) {
                    dx.set(0, [&] { return kernels::avg_pool2d_backward(dy, shape, options); });
                  };
                });
}

Variable avg_pool2d(const Variable& x, std::int64_t kernel) {
  kernels::AvgPool2dOptions options;
  options.window = {.kernel = {kernel, kernel}, .stride = {kernel, kernel}};
  return avg_pool2d(x, options);
}

}  // namespace lockstep
