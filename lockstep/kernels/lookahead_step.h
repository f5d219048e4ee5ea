// Lookahead's synchronisation of slow and fast weights over many parameters in one pass.
#pragma once

#include <span>

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/isa.h"

namespace lockstep::kernels {

struct LookaheadSegment {
  Tensor fast;  // the parameter: any shape, dense, floating
  Tensor slow;  // as fast in shape and strides, dtype state_dtype
};

// Per element: slow = slow + alpha * (fast - slow); fast = slow (Zhang et al. 2019).
// Overwrites both (=) and bumps their versions. Arithmetic in f32 for f16, bf16 and f32, in f64 for
// f64; a half parameter gets the rounded slow weight, which keeps its own f32 value. Segments may
// not overlap. Same bits with every instruction set and number of threads.
void lookahead_step(std::span<const LookaheadSegment> segments, double alpha, Isa isa = best_isa());

// slow = fast, converted.
void lookahead_start(std::span<const LookaheadSegment> segments);

}  // namespace lockstep::kernels
