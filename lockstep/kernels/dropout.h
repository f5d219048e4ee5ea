// Dropout with a mask that is never stored: both directions compute it from the random sequence.
#pragma once

#include "lockstep/core/philox.h"
#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// y_i = x_i / (1 - p) where philox_uniform(sequence.at(i)) >= p, else 0 (also for NaN and inf).
// i counts x's elements in the order of memory if x is dense (a channels-last image: N, H, W, C),
// else row-major; y is new (=) with that order, in x's dtype (computed in f32 for the half types).
// p in [0, 1]; p = 1 gives 0. The numbers do not depend on the number of threads.
Tensor dropout_forward(const Tensor& x, double p, const PhiloxSequence& sequence);

// dx_i = dy_i / (1 - p) where y_i was kept, else 0. `strides` are those of the result of forward:
// dy in another layout is brought to it.
Tensor dropout_backward(const Tensor& dy, const Strides& strides, double p,
                        const PhiloxSequence& sequence);

}  // namespace lockstep::kernels
