#include "lockstep/kernels/sum.h"

#include <limits>

#include "lockstep/core/check.h"
#include "lockstep/kernels/promote.h"
#include "lockstep/kernels/reduction_math.h"

namespace lockstep::kernels {
namespace {

// Divided by `divisor`, axes kept. `of_nothing` is the sum of no elements.
Tensor sum_axes(const Tensor& x, unsigned axes, DType result, double divisor = 1,
                double of_nothing = 0) {
  if (reduced_count(x.shape(), axes) == 0)
    return full(reduced_shape(x.shape(), axes, true), of_nothing, {result, x.device()});
  const DType compute = compute_dtype(result);
  return reduce_to(x, axes, compute, reduction_loops<reduction::Sum>(compute), result, divisor);
}

}  // namespace

Tensor sum(const Tensor& x, const Shape& axes, bool keepdim, std::optional<DType> dtype) {
  const unsigned set = axis_set(axes, x.dim(), "sum");
  const DType result = dtype ? *dtype : is_floating(x.dtype()) ? x.dtype() : kI64;
  Tensor y = sum_axes(x, set, result);
  return keepdim ? y : drop_axes(y, set);
}

Tensor mean(const Tensor& x, const Shape& axes, bool keepdim, std::optional<DType> dtype) {
  const DType result = dtype.value_or(x.dtype());
  LOCKSTEP_CHECK(is_floating(result), "mean: expected a floating dtype but got {}", result);
  const unsigned set = axis_set(axes, x.dim(), "mean");
  Tensor y = sum_axes(x, set, result, static_cast<double>(reduced_count(x.shape(), set)),
                      std::numeric_limits<double>::quiet_NaN());
  return keepdim ? y : drop_axes(y, set);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int lead = x.dim() - shape.rank();
  LOCKSTEP_CHECK(lead >= 0, "sum_to: shape {} has fewer dimensions than {}", x.shape(), shape);
  unsigned set = 0, missing = 0;
  for (int i = 0; i < x.dim(); ++i) {
    if (i < lead) {
      missing |= 1u << i;
      set |= 1u << i;
      continue;
    }
    LOCKSTEP_CHECK(shape[i - lead] == x.shape()[i] || shape[i - lead] == 1,
                   "sum_to: shape {} is no broadcast of {}", x.shape(), shape);
    if (shape[i - lead] != x.shape()[i]) set |= 1u << i;
  }
  return drop_axes(sum_axes(x, set, x.dtype()), missing);
}

}  // namespace lockstep::kernels
