// Layers that can apply a ReLU to their result while they write it.
#pragma once

#include "lockstep/autograd/variable.h"

namespace lockstep::nn {

class ReluFusion {
 public:
  virtual ~ReluFusion() = default;
  // relu(forward(x)) with one pass over memory less in each direction; the same bits.
  virtual Variable forward_relu(const Variable& x) = 0;
};

}  // namespace lockstep::nn
