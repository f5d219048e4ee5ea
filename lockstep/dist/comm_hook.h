// What is done with a bucket once its gradients are there: the place to change how ranks
// communicate.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/core/tensor.h"
#include "lockstep/dist/work.h"

namespace lockstep::dist {

class ProcessGroup;

// One bucket on its way. `flat` holds this rank's gradients, already divided by the number of ranks
// (the only place where averaging happens), and must hold the sum over ranks once the returned work
// is done.
struct GradBucket {
  int index = 0;
  int count = 0;  // of buckets in this step
  Tensor flat;
  Tag tag;

  bool is_last() const { return index == count - 1; }
};

// Called in bucket order, the same on all ranks, from inside backward; must not wait.
using CommHook =
    std::function<std::shared_ptr<Work>(ProcessGroup& group, const GradBucket& bucket)>;

// The default: one all-reduce in place.
std::shared_ptr<Work> all_reduce_hook(ProcessGroup& group, const GradBucket& bucket);

}  // namespace lockstep::dist
