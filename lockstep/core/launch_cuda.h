// What a launch needs of the host. Internal: includes CUDA's headers.
#pragma once

#include <cuda_runtime.h>

#include "lockstep/core/current_stream.h"

namespace lockstep::cuda {

// Throws Error naming the kernel and the device unless `status` is cudaSuccess.
void check_launch(cudaError_t status, const char* kernel);

}  // namespace lockstep::cuda
