// lookahead_step.h on CUDA devices. Internal.
#pragma once

#include <span>

#include "lockstep/kernels/lookahead_step.h"

namespace lockstep::kernels::cuda {

// Segments that were checked, all on one device. One launch for up to 24 of a dtype.
void lookahead_step(std::span<const LookaheadSegment> segments, double alpha);
void lookahead_start(std::span<const LookaheadSegment> segments);

}  // namespace lockstep::kernels::cuda
