// sgd_step.h on CUDA devices. Internal.
#pragma once

#include <span>

#include "lockstep/kernels/sgd_step.h"

namespace lockstep::kernels::cuda {

// Segments that were checked, all on one device. One launch for up to 24 of a dtype.
void sgd_step(std::span<const SgdSegment> segments, const SgdConfig& config);

}  // namespace lockstep::kernels::cuda
