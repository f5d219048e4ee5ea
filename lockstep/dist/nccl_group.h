// The `nccl` group: one CUDA device to a rank, collectives by NCCL on a stream of its own; what
// lies in the host's memory goes through a group of another kind beside it.
//
// NCCL may sum in another order than the tree of reduction_tree.h, by number of ranks, size and
// network; for one of these it is the same each time.
#pragma once

#include <memory>

#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

class Store;

// Only in builds with NCCL (kHasNccl).
std::shared_ptr<ProcessGroup> make_nccl_group(std::shared_ptr<Store> store, int rank, int size,
                                              const ProcessGroupOptions& options);

}  // namespace lockstep::dist
