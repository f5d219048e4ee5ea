// The order in which a copy walks two layouts of one shape. Internal: not for embedders.
#pragma once

#include "lockstep/core/tensor_handle.h"

namespace lockstep {

// Axes of both tensors without size-1 axes, ordered by dst's stride (largest first) and merged
// where both lie contiguously, so that the innermost run is as long as it can be.
struct CopyPlan {
  int rank = 0;
  std::int64_t size[kMaxRank], dst[kMaxRank], src[kMaxRank];
};

// Of two tensors of one shape with at least one element.
CopyPlan plan_copy(const Tensor& dst, const Tensor& src);

}  // namespace lockstep
