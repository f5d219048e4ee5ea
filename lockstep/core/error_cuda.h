// From a CUDA status to an exception. Internal: includes CUDA's headers.
#pragma once

#include <cuda_runtime.h>

namespace lockstep::cuda {

// Throws Error naming the call, the device and CUDA's words unless `status` is cudaSuccess. A
// status that does not stick is cleared.
void check(cudaError_t status, const char* call);

}  // namespace lockstep::cuda
