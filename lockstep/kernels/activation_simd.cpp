#include "lockstep/kernels/pointwise_f32.h"

namespace lockstep::kernels {

using namespace pointwise;
constexpr Isa kIsa = Isa::LOCKSTEP_ISA;

template void unary_f32<kIsa, Relu>(const LoopArguments&);
template void binary_f32<kIsa, ReluBackward>(const LoopArguments&);
template void unary_f32<kIsa, Sigmoid>(const LoopArguments&);
template void binary_f32<kIsa, SigmoidBackward>(const LoopArguments&);
template void unary_f32<kIsa, Tanh>(const LoopArguments&);
template void binary_f32<kIsa, TanhBackward>(const LoopArguments&);
template void unary_f32<kIsa, Silu>(const LoopArguments&);
template void binary_f32<kIsa, SiluBackward>(const LoopArguments&);
template void unary_f32<kIsa, Gelu>(const LoopArguments&);
template void binary_f32<kIsa, GeluBackward>(const LoopArguments&);
template void unary_f32<kIsa, GeluTanh>(const LoopArguments&);
template void binary_f32<kIsa, GeluTanhBackward>(const LoopArguments&);

}  // namespace lockstep::kernels
