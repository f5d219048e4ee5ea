// The `shm` group: ranks are processes of one user on one host.
#pragma once

#include <memory>

#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

class Store;

std::shared_ptr<ProcessGroup> make_shm_group(Store& store, int rank, int size,
                                             const ProcessGroupOptions& options);

}  // namespace lockstep::dist
