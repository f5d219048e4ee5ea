#pragma once

#include "lockstep/core/philox.h"

namespace lockstep::testing {

// Writes 4 * blocks numbers of the sequence to device memory, on the default stream.
void philox_numbers(const PhiloxSequence& sequence, void* out, unsigned blocks);

}  // namespace lockstep::testing
