#include "lockstep/kernels/pointwise_f32.h"

namespace lockstep::kernels {

using namespace pointwise;
constexpr Isa kIsa = Isa::LOCKSTEP_ISA;

template void binary_f32<kIsa, Equal>(const LoopArguments&);
template void binary_f32<kIsa, NotEqual>(const LoopArguments&);
template void binary_f32<kIsa, Less>(const LoopArguments&);
template void binary_f32<kIsa, LessEqual>(const LoopArguments&);
template void binary_f32<kIsa, LogicalAnd>(const LoopArguments&);
template void binary_f32<kIsa, LogicalOr>(const LoopArguments&);
template void unary_f32<kIsa, LogicalNot>(const LoopArguments&);
template void unary_f32<kIsa, IsNan>(const LoopArguments&);
template void unary_f32<kIsa, IsFinite>(const LoopArguments&);
template void ternary_f32<kIsa, Where>(const LoopArguments&);

}  // namespace lockstep::kernels
