// Copies between layouts of one dtype.
#include <cstring>

#include "lockstep/core/check.h"
#include "lockstep/core/tensor.h"

namespace lockstep {
namespace {

// Axes of both tensors without size-1 axes, ordered by dst's stride (largest first) and merged
// where both lie contiguously, so that the innermost run is as long as it can be.
struct CopyPlan {
  int rank = 0;
  std::int64_t size[kMaxRank], dst[kMaxRank], src[kMaxRank];
};

CopyPlan plan_copy(const Tensor& dst, const Tensor& src) {
  CopyPlan p;
  for (int i = 0; i < dst.dim(); ++i) {
    if (dst.shape()[i] == 1) continue;
    int at = p.rank++;
    for (; at > 0 && p.dst[at - 1] < dst.strides()[i]; --at) {
      p.size[at] = p.size[at - 1];
      p.dst[at] = p.dst[at - 1];
      p.src[at] = p.src[at - 1];
    }
    p.size[at] = dst.shape()[i];
    p.dst[at] = dst.strides()[i];
    p.src[at] = src.strides()[i];
  }
  int last = 0;
  for (int i = 1; i < p.rank; ++i) {
    const bool merges = p.dst[last] == p.size[i] * p.dst[i] && p.src[last] == p.size[i] * p.src[i];
    if (merges) {
      p.size[last] *= p.size[i];
    } else {
      ++last;
      p.size[last] = p.size[i];
    }
    p.dst[last] = p.dst[i];
    p.src[last] = p.src[i];
  }
  p.rank = p.rank == 0 ? 0 : last + 1;
  return p;
}

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

void copy_elements(const Tensor& dst, const Tensor& src) {
  LOCKSTEP_CHECK(dst.defined() && src.defined(), "copy: an undefined tensor");
  LOCKSTEP_CHECK(dst.dtype() == src.dtype() && dst.shape() == src.shape(),
                 "copy: expected source and destination alike but got {} {} and {} {}", src.dtype(),
                 src.shape(), dst.dtype(), dst.shape());
  dst.bump_version();
  if (dst.numel() == 0) return;
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

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  Tensor out = empty(shape_, {dtype_, device(), format});
  copy_elements(out, *this);
  return out;
}

}  // namespace lockstep
