#include "lockstep/kernels/pointwise_cuda.cuh"

namespace lockstep::kernels::cuda {

LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Exp)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Log)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Log1p)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Sin)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Cos)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Erf)

}  // namespace lockstep::kernels::cuda
