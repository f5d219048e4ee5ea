// Which product kernel a call gets on a CUDA device.
#include "lockstep/kernels/gemm_cuda.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/gemm_algorithm.h"

namespace lockstep::kernels::cuda {

void gemm(const GemmCall& call) {
  const GemmAlgorithm algorithm = gemm_algorithm();
  if (algorithm != GemmAlgorithm::kTiled && gemm_library(call)) return;
  LOCKSTEP_CHECK(algorithm != GemmAlgorithm::kLibrary,
                 "gemm: cuBLASLt has no kernel for strides {} and {}", call.a.strides(),
                 call.b.strides());
  gemm_tiled(call);
}

}  // namespace lockstep::kernels::cuda
