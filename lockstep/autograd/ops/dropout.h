// Dropout. Mask, order of elements and special values: kernels/dropout.h.
#pragma once

#include "lockstep/autograd/variable.h"
#include "lockstep/core/generator.h"

namespace lockstep {

// Zeroes elements with probability p and scales the others by 1 / (1 - p). x itself where training
// is false or p is 0. Takes its numbers from the generator's Philox sequence, whose stream sets
// ranks apart; the mask is computed again in backward, not stored. Throws Error for p outside
// [0, 1].
Variable dropout(const Variable& x, double p, bool training, Generator& generator);
// With the calling thread's default generator.
Variable dropout(const Variable& x, double p = 0.5, bool training = true);

}  // namespace lockstep
