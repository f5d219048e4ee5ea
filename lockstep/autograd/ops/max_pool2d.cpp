#include "lockstep/autograd/ops/max_pool2d.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/max_pool2d.h"

namespace lockstep {

Variable max_pool2d(const Variable& x, const kernels::Pool2dOptions& options, MemoryFormat format) {
  kernels::MaxPool2dResult result = kernels::max_pool2d_forward(x.data(), options, format);
  return record("max_pool2d", std::move(result.y), inputs(x), [&](const Tensor&) {
    return [taps = result.taps, shape = x.shape(), options](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::max_pool2d_backward(dy, taps, shape, options); });
    };
  });
}

Variable max_pool2d(const Variable& x, std::int64_t kernel, MemoryFormat format) {
  return max_pool2d(x, {.kernel = {kernel, kernel}, .stride = {kernel, kernel}}, format);
}

}  // namespace lockstep
