// The f32 loops' definitions, for *_simd.cpp files only. Internal.
#pragma once

#include "lockstep/kernels/pointwise_loops.h"

namespace lockstep::kernels {

template <Isa isa, class Op>
void unary_f32(const LoopArguments& args) {
  unary_loop_body<Op, float>(args);
}
template <Isa isa, class Op>
void binary_f32(const LoopArguments& args) {
  binary_loop_body<Op, float>(args);
}
template <Isa isa, class Op>
void ternary_f32(const LoopArguments& args) {
  ternary_loop_body<Op, float>(args);
}

}  // namespace lockstep::kernels
