// Channels-last: the memory layout (N, H, W, C) that image tensors have from the first layer to the
// last. Their logical shape stays (N, C, H, W).
#pragma once

#include <cstdint>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// x itself where it is channels-last already (C = 1 and H = W = 1 are so in any layout), else a
// channels-last copy, which counts as a reorder. Throws Error naming `op` unless x is 4-D.
Tensor channels_last(const Tensor& x, const char* op);

// Activations that had to be copied into another layout since the process began. A network that
// is fed channels-last images needs none. Weights do not count.
std::uint64_t activation_reorders();

}  // namespace lockstep::kernels
