// How an element-wise op deals with dtypes. Internal.
#pragma once

namespace lockstep::kernels {

// What the dtype of the result is, given the dtype that the inputs promote to.
enum class ResultKind {
  kPromoted,  // that dtype
  kFloating,  // that dtype if floating, else f32, and computed so
  kBool,
};

// The number of inputs.
enum class Arity { kUnary = 1, kBinary, kTernary };

}  // namespace lockstep::kernels
