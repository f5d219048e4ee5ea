#include "lockstep/dist/comm_hook.h"

#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

std::shared_ptr<Work> all_reduce_hook(ProcessGroup& group, const GradBucket& bucket) {
  return group.all_reduce(span_of(bucket.flat), ReduceOp::kSum, bucket.tag);
}

}  // namespace lockstep::dist
