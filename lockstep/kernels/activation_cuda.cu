#include "lockstep/kernels/pointwise_cuda.cuh"

namespace lockstep::kernels::cuda {

LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kUnary, Relu)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kBinary, ReluBackward)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Sigmoid)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kBinary, SigmoidBackward)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Tanh)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kBinary, TanhBackward)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Silu)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kBinary, SiluBackward)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Gelu)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kBinary, GeluBackward)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, GeluTanh)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kBinary, GeluTanhBackward)

}  // namespace lockstep::kernels::cuda
