// What an element-wise op takes: a tensor or a number.
#pragma once

#include <concepts>
#include <cstdint>

#include "lockstep/core/tensor.h"

namespace lockstep {

// A number that knows whether it was written as an integer, for the result's dtype: an i64 tensor
// plus 2 is i64, plus 2.0 it is f32.
class Scalar {
 public:
  template <std::integral Integer>
  Scalar(Integer value)  // NOLINT(google-explicit-constructor)
      : real_(static_cast<double>(value)),
        integer_(static_cast<std::int64_t>(value)),
        is_integer_(true) {}
  template <std::floating_point Real>
  Scalar(Real value) : real_(static_cast<double>(value)) {}  // NOLINT(google-explicit-constructor)

  bool is_integer() const { return is_integer_; }
  double real() const { return real_; }
  std::int64_t integer() const { return integer_; }  // only if is_integer()

 private:
  double real_;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
};

namespace kernels {

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

}  // namespace kernels
}  // namespace lockstep
