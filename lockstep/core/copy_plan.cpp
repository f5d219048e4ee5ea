#include "lockstep/core/copy_plan.h"

namespace lockstep {

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

}  // namespace lockstep
