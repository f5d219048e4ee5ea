// Largest and smallest elements and where they are. NaN counts as the greatest, so max never hides
// one; min gives NaN too where there is one (as PyTorch). Of equal elements the first is taken.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// Over any axes (none given: all); x's dtype. Throws Error if there is nothing to choose from.
Tensor amax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Shape& axes = {}, bool keepdim = false);

// The elements' values and indices (i64) along one axis. argmax of only NaN is 0.
struct ValuesAndIndices {
  Tensor values, indices;
};
ValuesAndIndices max_along(const Tensor& x, std::int64_t axis, bool keepdim = false);
ValuesAndIndices min_along(const Tensor& x, std::int64_t axis, bool keepdim = false);

// Whether any / all elements are not 0 (NaN is not 0). Of nothing: false / true.
Tensor any(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Shape& axes = {}, bool keepdim = false);

}  // namespace lockstep::kernels
