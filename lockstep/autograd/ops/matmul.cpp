#include "lockstep/autograd/ops/matmul.h"

#include "lockstep/autograd/record.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/matmul.h"

namespace lockstep {

Variable matmul(const Variable& a, const Variable& b) {
  return record("matmul", kernels::matmul_forward(a.data(), b.data()), inputs(a, b),
                [&](const Tensor&) {
                  return [a = SavedTensor(a.data()), b = SavedTensor(b.data())](const Tensor& dy,
                                                                                Gradients& dx) {
                    dx.set(0, [&] { return kernels::matmul_backward_a(dy, a.get(), b.get()); });
                    dx.set(1, [&] { return kernels::matmul_backward_b(dy, a.get(), b.get()); });
                  };
                });
}

Variable mm(const Variable& a, const Variable& b) {
  LOCKSTEP_CHECK(a.dim() == 2 && b.dim() == 2 && a.shape()[1] == b.shape()[0],
                 "mm: expected (M, K) and (K, N) but got {} and {}", a.shape(), b.shape());
  return matmul(a, b);
}

}  // namespace lockstep
