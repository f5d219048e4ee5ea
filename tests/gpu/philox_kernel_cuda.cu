// Philox in a kernel, for philox_device_test.cpp.
#include "gpu/philox_kernel_cuda.h"

#include "lockstep/core/kernel_launch.cuh"
#include "lockstep/core/philox.h"

namespace lockstep::testing {
namespace {

// Four numbers per thread, in 16 bytes.
__global__ void philox_kernel(PhiloxSequence sequence, std::uint32_t* out, unsigned blocks) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= blocks) return;
  const PhiloxCounter numbers = sequence.block(i);
  reinterpret_cast<uint4*>(out)[i] = make_uint4(numbers[0], numbers[1], numbers[2], numbers[3]);
}

}  // namespace

void philox_numbers(const PhiloxSequence& sequence, void* out, unsigned blocks) {
  cuda::launch("philox", nullptr, cuda::grid_for(blocks, 64), 64, 0, philox_kernel, sequence,
               static_cast<std::uint32_t*>(out), blocks);
}

}  // namespace lockstep::testing
