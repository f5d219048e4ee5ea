// Options that the losses share, with PyTorch's names and meanings.
#pragma once

#include <cstdint>

#include "lockstep/core/tensor.h"

namespace lockstep {

// kMean divides the sum by the number of elements (or by the weights' sum, see each loss).
enum class Reduction : std::uint8_t { kNone, kMean, kSum };

// Class-index losses. A target equal to ignore_index, inside the range of classes or not, takes no
// part: its loss is 0, its gradient exactly 0, and kMean does not count it. With nothing left to
// count kMean gives loss 0 and gradients 0 (PyTorch: NaN).
struct ClassLossOptions {
  Reduction reduction = Reduction::kMean;
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;  // in [0, 1]; cross_entropy only
  Tensor weight = {};          // undefined, or one weight per class (C), floating
};

}  // namespace lockstep
