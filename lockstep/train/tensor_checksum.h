// A number that tells whether saved tensors came back as they were.
#pragma once

#include <cstdint>

#include "lockstep/core/safetensors.h"

namespace lockstep::train {

// Of names, dtypes, shapes and row-major bytes. A change within any one 8-byte word always changes
// it; it is no protection against intent.
std::uint64_t tensor_checksum(const TensorMap& tensors);

}  // namespace lockstep::train
