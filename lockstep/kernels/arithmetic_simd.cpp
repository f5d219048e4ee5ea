#include "lockstep/kernels/pointwise_f32.h"

namespace lockstep::kernels {

using namespace pointwise;
constexpr Isa kIsa = Isa::LOCKSTEP_ISA;

template void binary_f32<kIsa, Add>(const LoopArguments&);
template void binary_f32<kIsa, Sub>(const LoopArguments&);
template void binary_f32<kIsa, Mul>(const LoopArguments&);
template void binary_f32<kIsa, Div>(const LoopArguments&);
template void binary_f32<kIsa, AddScaled>(const LoopArguments&);
template void binary_f32<kIsa, Pow>(const LoopArguments&);
template void binary_f32<kIsa, Maximum>(const LoopArguments&);
template void binary_f32<kIsa, Minimum>(const LoopArguments&);
template void binary_f32<kIsa, ClampBackward>(const LoopArguments&);
template void unary_f32<kIsa, Neg>(const LoopArguments&);
template void unary_f32<kIsa, Abs>(const LoopArguments&);
template void unary_f32<kIsa, Sign>(const LoopArguments&);
template void unary_f32<kIsa, Square>(const LoopArguments&);
template void unary_f32<kIsa, Sqrt>(const LoopArguments&);
template void unary_f32<kIsa, Rsqrt>(const LoopArguments&);
template void unary_f32<kIsa, Reciprocal>(const LoopArguments&);
template void unary_f32<kIsa, Clamp>(const LoopArguments&);

}  // namespace lockstep::kernels
