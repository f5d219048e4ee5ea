#include "lockstep/train/rank_state.h"

#include "lockstep/core/check.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::train {

TensorMap gather_rank_states(const Tensor& mine, dist::ProcessGroup& group) {
  Tensor all = empty({group.size(), mine.numel()}, {.dtype = kU8});
  group.all_gather(dist::span_of(mine), dist::span_of(all))->wait();
  TensorMap states;
  for (int r = 0; r < group.size(); ++r) states[std::to_string(r)] = all.select(0, r);
  return states;
}

Tensor rank_state_of(const TensorMap& states, int rank, int world) {
  LOCKSTEP_CHECK(static_cast<int>(states.size()) == world,
                 "it was written by {} ranks, resumed by {}; the same bits need the same number "
                 "of ranks",
                 states.size(), world);
  const auto it = states.find(std::to_string(rank));
  LOCKSTEP_CHECK(it != states.end(), "no state of rank {} in it", rank);
  return it->second.clone();
}

}  // namespace lockstep::train
