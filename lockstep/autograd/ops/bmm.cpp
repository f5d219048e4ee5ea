#include "lockstep/autograd/ops/bmm.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/matmul.h"

namespace lockstep {

Variable bmm(const Variable& a, const Variable& b) {
  return record("bmm", kernels::bmm_forward(a.data(), b.data()), inputs(a, b), [&](const Tensor&) {
    return [a = SavedTensor(a.data()), b = SavedTensor(b.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::bmm_forward(dy, b.get().transpose(1, 2)); });
      dx.set(1, [&] { return kernels::bmm_forward(a.get().transpose(1, 2), dy); });
    };
  });
}

}  // namespace lockstep
