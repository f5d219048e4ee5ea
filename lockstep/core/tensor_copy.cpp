// Copies between layouts of one dtype.
#include <cstring>

#include "lockstep/core/check.h"
#include "lockstep/core/copy_plan.h"
#include "lockstep/core/tensor.h"
#include "lockstep/core/tensor_transfer.h"

namespace lockstep {
namespace {

template <class Unit>
void copy_axis(const CopyPlan& p, int axis, Unit* dst, const Unit* src) {
  if (axis == p.rank) {
    *dst = *src;
    return;
  }
  const std::int64_t n = p.size[axis], ds = p.dst[axis], ss = p.src[axis];
  if (axis == p.rank - 1) {
    if (ds == 1 && ss == 1) {
      std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(Unit));
    } else {
      for (std::int64_t i = 0; i < n; ++i) dst[i * ds] = src[i * ss];
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) copy_axis(p, axis + 1, dst + i * ds, src + i * ss);
}

template <class Unit>
void copy_units(const CopyPlan& p, void* dst, const void* src) {
  copy_axis(p, 0, static_cast<Unit*>(dst), static_cast<const Unit*>(src));
}

}  // namespace

void copy_elements(const Tensor& dst, const Tensor& src, bool non_blocking) {
  LOCKSTEP_CHECK(dst.defined() && src.defined(), "copy: an undefined tensor");
  LOCKSTEP_CHECK(dst.dtype() == src.dtype() && dst.shape() == src.shape(),
                 "copy: expected source and destination alike but got {} {} and {} {}", src.dtype(),
                 src.shape(), dst.dtype(), dst.shape());
  dst.bump_version();
  if (dst.numel() == 0) return;
  if (dst.device().is_cuda() || src.device().is_cuda())
    return detail::copy_with_device(dst, src, non_blocking);
  const CopyPlan plan = plan_copy(dst, src);
  switch (dst.itemsize()) {
    case 1:
      return copy_units<std::uint8_t>(plan, dst.data(), src.data());
    case 2:
      return copy_units<std::uint16_t>(plan, dst.data(), src.data());
    case 4:
      return copy_units<std::uint32_t>(plan, dst.data(), src.data());
    default:
      return copy_units<std::uint64_t>(plan, dst.data(), src.data());
  }
}

void zero_(const Tensor& tensor) {
  LOCKSTEP_CHECK(tensor.defined(), "zero_: the tensor is undefined");
  tensor.bump_version();
  if (tensor.numel() == 0) return;
  if (tensor.device().is_cuda()) return detail::zero_on_device(tensor);
  if (tensor.is_dense()) {
    std::memset(tensor.data(), 0, tensor.nbytes());
    return;
  }
  copy_elements(tensor, zeros({}, {tensor.dtype()}).expand(tensor.shape()));
}

Tensor Tensor::clone() const {
  Tensor out = empty_like(*this);
  copy_elements(out, *this);
  return out;
}

Tensor Tensor::to(Device device, bool non_blocking) const {
  LOCKSTEP_CHECK(defined(), "to: the tensor is undefined");
  if (this->device() == device) return *this;
  require_device(device, "to");
  Tensor out =
      is_dense() ? Tensor(std::make_shared<Storage>(nbytes(), device), shape_, strides_, 0, dtype_)
                 : empty(shape_, {dtype_, device});
  copy_elements(out, *this, non_blocking);
  return out;
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  Tensor out = empty(shape_, {dtype_, device(), format});
  copy_elements(out, *this);
  return out;
}

}  // namespace lockstep
