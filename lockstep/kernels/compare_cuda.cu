#include "lockstep/kernels/pointwise_cuda.cuh"

namespace lockstep::kernels::cuda {

LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kBinary, Equal)
LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kBinary, NotEqual)
LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kBinary, Less)
LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kBinary, LessEqual)
LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kBinary, LogicalAnd)
LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kBinary, LogicalOr)
LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kUnary, LogicalNot)
LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kUnary, IsNan)
LOCKSTEP_INSTANTIATE_POINTWISE(kBool, kUnary, IsFinite)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kTernary, Where)

}  // namespace lockstep::kernels::cuda
