// Calls between ncclGroupStart and ncclGroupEnd are kept until the end; outside of a group each is
// one of its own.
#pragma once

#include <functional>

#include "vgpu/nccl/exchange.h"

namespace vgpu {

// Enqueues the transfer now or at the end of the group.
ncclResult_t submit(ncclComm_t comm, Transfer transfer, cudaStream_t stream);

// Meets the other ranks now, or at the end of the group beside the group's other ones.
ncclResult_t submit_connection(std::function<ncclResult_t()> connect);

}  // namespace vgpu
