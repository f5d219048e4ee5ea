// State that every rank has of its own, in one rank's checkpoint.
#pragma once

#include "lockstep/core/safetensors.h"
#include "lockstep/train/agree.h"

namespace lockstep::dist {
class ProcessGroup;
}

namespace lockstep::train {

// Collective: the states (u8, the same size everywhere) of all ranks as "0", "1", ….
TensorMap gather_rank_states(const Tensor& mine, dist::ProcessGroup& group);
// This rank's; throws Error if the checkpoint was written by another number of ranks.
Tensor rank_state_of(const TensorMap& states, int rank, int world);

}  // namespace lockstep::train
