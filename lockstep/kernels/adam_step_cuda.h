// adam_step.h on CUDA devices. Internal.
#pragma once

#include <span>

#include "lockstep/kernels/adam_step.h"

namespace lockstep::kernels::cuda {

// Segments that were checked, all on one device. One launch for up to 24 of a dtype.
void adam_step(std::span<const AdamSegment> segments, const AdamConfig& config);

}  // namespace lockstep::kernels::cuda
