#include "lockstep/kernels/loop_plan.h"

#include <cstdlib>
#include <utility>

namespace lockstep::kernels {
namespace {

bool merges(const LoopPlan& p, int inner, int outer) {
  for (int k = 0; k < p.operands; ++k)
    if (p.stride[outer][k] != p.size[inner] * p.stride[inner][k]) return false;
  return true;
}

// Whether axis a belongs further in than axis b: by the first operand in which both move.
bool goes_inside(const std::int64_t* a, const std::int64_t* b, int operands) {
  for (int k = 0; k < operands; ++k) {
    const std::int64_t sa = std::abs(a[k]), sb = std::abs(b[k]);
    if (sa == 0 || sb == 0 || sa == sb) continue;
    return sa < sb;
  }
  return false;
}

}  // namespace

std::int64_t LoopPlan::rows() const {
  std::int64_t n = 1;
  for (int i = 1; i < rank; ++i) n *= size[i];
  return n;
}

LoopPlan plan_loop(const Shape& shape, std::span<const PlanOperand> operands) {
  LoopPlan p;
  p.operands = static_cast<int>(operands.size());
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 1) continue;
    std::int64_t stride[kMaxOperands];
    for (int k = 0; k < p.operands; ++k) {
      const Shape& s = *operands[k].shape;
      const int own = axis - (shape.rank() - s.rank());
      stride[k] = own < 0 || s[own] == 1 ? 0 : (*operands[k].strides)[own];
    }
    int at = p.rank++;
    for (; at > 0 && goes_inside(stride, p.stride[at - 1], p.operands); --at) {
      p.size[at] = p.size[at - 1];
      for (int k = 0; k < p.operands; ++k) p.stride[at][k] = p.stride[at - 1][k];
    }
    p.size[at] = shape[axis];
    for (int k = 0; k < p.operands; ++k) p.stride[at][k] = stride[k];
  }
  if (p.rank == 0) {
    p.rank = 1;
    p.size[0] = 1;
    for (int k = 0; k < p.operands; ++k) p.stride[0][k] = 0;
    return p;
  }
  int last = 0;
  for (int i = 1; i < p.rank; ++i) {
    if (merges(p, last, i)) {
      p.size[last] *= p.size[i];
      continue;
    }
    ++last;
    p.size[last] = p.size[i];
    for (int k = 0; k < p.operands; ++k) p.stride[last][k] = p.stride[i][k];
  }
  p.rank = last + 1;
  return p;
}

MemoryFormat layout_of(const Tensor& x) {
  if (x.suggested_format() == MemoryFormat::kChannelsLast) return MemoryFormat::kChannelsLast;
  if (x.dim() != 4 || x.is_contiguous() || x.shape()[1] == 1) return MemoryFormat::kContiguous;
  const Strides& s = x.strides();
  const bool last = s[1] == 1 && s[3] >= x.shape()[1] && s[2] >= s[3] && s[0] >= s[2];
  return last ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous;
}

RowCursor::RowCursor(const LoopPlan& plan, std::int64_t row) : plan_(plan) {
  for (int i = 1; i < plan.rank; ++i) {
    index_[i] = row % plan.size[i];
    row /= plan.size[i];
    for (int k = 0; k < plan.operands; ++k) offset_[k] += index_[i] * plan.stride[i][k];
  }
}

void RowCursor::next() {
  for (int i = 1; i < plan_.rank; ++i) {
    for (int k = 0; k < plan_.operands; ++k) offset_[k] += plan_.stride[i][k];
    if (++index_[i] < plan_.size[i]) return;
    index_[i] = 0;
    for (int k = 0; k < plan_.operands; ++k) offset_[k] -= plan_.size[i] * plan_.stride[i][k];
  }
}

}  // namespace lockstep::kernels
