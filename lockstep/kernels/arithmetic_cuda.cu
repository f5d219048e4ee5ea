#include "lockstep/kernels/pointwise_cuda.cuh"

namespace lockstep::kernels::cuda {

LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kBinary, Add)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kBinary, AddScaled)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kBinary, Sub)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kBinary, Mul)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kBinary, Div)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kBinary, Pow)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kBinary, Maximum)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kBinary, Minimum)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kUnary, Neg)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kUnary, Abs)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kUnary, Sign)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kUnary, Square)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Sqrt)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Rsqrt)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kUnary, Reciprocal)
LOCKSTEP_INSTANTIATE_POINTWISE(kPromoted, kUnary, Clamp)
LOCKSTEP_INSTANTIATE_POINTWISE(kFloating, kBinary, ClampBackward)

}  // namespace lockstep::kernels::cuda
