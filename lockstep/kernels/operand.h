// What an element-wise op takes: a tensor or a number.
#pragma once

#include <concepts>

#include "lockstep/core/scalar.h"
#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// Lives as long as the call that it is an argument of.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(&tensor), scalar_(0) {}  // NOLINT
  Operand(Scalar scalar) : tensor_(nullptr), scalar_(scalar) {}    // NOLINT
  template <class N>
  requires std::integral<N> || std::floating_point<N> Operand(N number)
      : tensor_(nullptr), scalar_(number) {}  // NOLINT

  bool is_tensor() const { return tensor_ != nullptr; }
  const Tensor& tensor() const { return *tensor_; }
  const Scalar& scalar() const { return scalar_; }

 private:
  const Tensor* tensor_;
  Scalar scalar_;
};

}  // namespace lockstep::kernels
