#include "lockstep/autograd/ops/adaptive_avg_pool2d.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/avg_pool2d.h"

namespace lockstep {

Variable adaptive_avg_pool2d(const Variable& x, std::int64_t height, std::int64_t width) {
  return record("adaptive_avg_pool2d",
                kernels::adaptive_avg_pool2d_forward(x.data(), height, width), inputs(x),
                [&](const Tensor&) {
                  return [shape = x.shape()](const Tensor& dy, Gradients& dx) {
                    dx.set(0, [&] { return kernels::adaptive_avg_pool2d_backward(dy, shape); });
                  };
                });
}

}  // namespace lockstep
