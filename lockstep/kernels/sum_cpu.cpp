#include "lockstep/kernels/sum.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/promote.h"
#include "lockstep/kernels/reduction_math.h"

namespace lockstep::kernels {
namespace {

// In the compute type, axes kept.
Tensor sum_axes(const Tensor& x, unsigned axes, DType compute) {
  if (reduced_count(x.shape(), axes) == 0)
    return zeros(reduced_shape(x.shape(), axes, true), {compute, x.device()});
  return reduce(x, axes, compute, reduction_loops<reduction::Sum>(compute));
}

}  // namespace

Tensor sum(const Tensor& x, const Shape& axes, bool keepdim, std::optional<DType> dtype) {
  const unsigned set = axis_set(axes, x.dim(), "sum");
  const DType result = dtype ? *dtype : is_floating(x.dtype()) ? x.dtype() : kI64;
  Tensor y = cast(sum_axes(x, set, compute_dtype(result)), result);
  return keepdim ? y : drop_axes(y, set);
}

Tensor mean(const Tensor& x, const Shape& axes, bool keepdim, std::optional<DType> dtype) {
  const DType result = dtype.value_or(x.dtype());
  LOCKSTEP_CHECK(is_floating(result), "mean: expected a floating dtype but got {}", result);
  const unsigned set = axis_set(axes, x.dim(), "mean");
  Tensor y = sum_axes(x, set, compute_dtype(result));
  div_into(y, y, static_cast<double>(reduced_count(x.shape(), set)));
  y = cast(y, result);
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
  const DType compute = compute_dtype(x.dtype());
  return drop_axes(cast(sum_axes(x, set, compute), x.dtype()), missing);
}

}  // namespace lockstep::kernels
