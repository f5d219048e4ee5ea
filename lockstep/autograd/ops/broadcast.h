// The way back through broadcasting and promotion. Internal to ops.
#pragma once

#include "lockstep/autograd/saved_tensor.h"
#include "lockstep/autograd/variable.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/sum.h"

namespace lockstep {

// Remembers the shape and dtype of an input, to bring a gradient of the result's form to them.
class InputForm {
 public:
  explicit InputForm(const Variable& x) : shape_(x.shape()), dtype_(x.dtype()) {}

  // Sums over broadcast axes, then casts; dy itself where neither is needed.
  Tensor undo(Tensor dy) const {
    if (dy.shape() != shape_) dy = kernels::sum_to(dy, shape_);
    return dy.dtype() == dtype_ ? dy : kernels::cast(dy, dtype_);
  }

 private:
  Shape shape_;
  DType dtype_;
};

// Saves x only if `wanted`: what no gradient needs may be changed and freed.
inline SavedTensor save_if(bool wanted, const Variable& x) {
  return wanted ? SavedTensor(x.data()) : SavedTensor();
}

}  // namespace lockstep
