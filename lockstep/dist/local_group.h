// The `local` group: ranks are threads of one process, and every address is everyone's.
#pragma once

#include <memory>

#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

class Store;

std::shared_ptr<ProcessGroup> make_local_group(Store& store, int rank, int size,
                                               const ProcessGroupOptions& options);

}  // namespace lockstep::dist
