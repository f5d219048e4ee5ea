#include "lockstep/kernels/pointwise_f32.h"

namespace lockstep::kernels {

using namespace pointwise;
constexpr Isa kIsa = Isa::LOCKSTEP_ISA;

template void unary_f32<kIsa, Exp>(const LoopArguments&);
template void unary_f32<kIsa, Log>(const LoopArguments&);
template void unary_f32<kIsa, Log1p>(const LoopArguments&);
template void unary_f32<kIsa, Sin>(const LoopArguments&);
template void unary_f32<kIsa, Cos>(const LoopArguments&);
template void unary_f32<kIsa, Erf>(const LoopArguments&);

}  // namespace lockstep::kernels
