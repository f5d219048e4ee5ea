// The build without oneDNN: gemm() uses the library's own blocked product for everything.
#include "lockstep/kernels/gemm.h"

namespace lockstep::kernels {

bool gemm_f32_library(const Tensor&, const Tensor&, const Tensor&, bool) { return false; }
bool gemm_bf16_library(const Tensor&, const Tensor&, const Tensor&, bool) { return false; }

}  // namespace lockstep::kernels
