#include "lockstep/kernels/device_check.h"

#include "lockstep/core/check.h"

namespace lockstep::kernels {
namespace {

struct Common {
  const char* op;
  const Tensor* first = nullptr;

  void add(const Tensor& x) {
    if (!x.defined()) return;
    if (!first) first = &x;
    LOCKSTEP_CHECK(x.device() == first->device(),
                   "{}: expected all tensors on one device but got {} {} on {} and {} {} on {}", op,
                   first->dtype(), first->shape(), first->device().str(), x.dtype(), x.shape(),
                   x.device().str());
  }
  Device device() const { return first ? first->device() : kCpu; }
};

}  // namespace

Device common_device(const char* op, std::initializer_list<const Tensor*> tensors) {
  Common common{op};
  for (const Tensor* x : tensors) common.add(*x);
  return common.device();
}

Device common_device(const char* op, std::span<const Operand> operands) {
  Common common{op};
  for (const Operand& x : operands)
    if (x.is_tensor()) common.add(x.tensor());
  return common.device();
}

void require_cpu(const char* op, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* x : tensors)
    LOCKSTEP_CHECK(x->device().is_cpu(), "{}: is for tensors on the CPU but got {} {} on {}", op,
                   x->dtype(), x->shape(), x->device().str());
}

}  // namespace lockstep::kernels
