#include "lockstep/autograd/ops/cast.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/cast.h"

namespace lockstep {

Variable to(const Variable& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = kernels::cast(x.data(), dtype);
  if (!is_floating(dtype)) return Variable(std::move(y));
  return record("to", std::move(y), inputs(x), [&](const Tensor&) {
    return [from = x.dtype()](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::cast(dy, from); });
    };
  });
}

}  // namespace lockstep
