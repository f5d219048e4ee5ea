#include "lockstep/kernels/moments.h"

#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/compare.h"
#include "lockstep/kernels/promote.h"
#include "lockstep/kernels/reduction_math.h"
#include "lockstep/kernels/sum.h"

namespace lockstep::kernels {
namespace {

void check_floating(const char* name, const Tensor& x) {
  LOCKSTEP_CHECK(is_floating(x.dtype()), "{}: expected a floating dtype but got {}", name,
                 x.dtype());
}

// In the compute type, axes kept; 0 of nothing.
template <class Op>
Tensor reduce_or_zero(const Tensor& x, unsigned set, DType compute) {
  if (reduced_count(x.shape(), set) == 0)
    return zeros(reduced_shape(x.shape(), set, true), {compute, x.device()});
  return reduce(x, set, compute, reduction_loops<Op>(compute));
}

double degrees(const Shape& shape, unsigned set, int correction) {
  return static_cast<double>(std::max<std::int64_t>(reduced_count(shape, set) - correction, 0));
}

// x - mean in the compute type.
Tensor centered(const Tensor& x, const Shape& axes) {
  const Tensor wide = cast(x, compute_dtype(x.dtype()));
  return sub(wide, mean(wide, axes, true));
}

Tensor variance(const Tensor& x, const Shape& axes, unsigned set, int correction) {
  const DType compute = compute_dtype(x.dtype());
  Tensor y = reduce_or_zero<reduction::SumSquares>(centered(x, axes), set, compute);
  div_into(y, y, degrees(x.shape(), set, correction));
  return y;
}

Tensor l2_norm(const Tensor& x, unsigned set) {
  if (x.dtype() != kF64) return sqrt(reduce_or_zero<reduction::SumSquares>(x, set, kF64));
  const Tensor largest = reduce_or_zero<reduction::MaxAbs>(x, set, kF64);
  const Tensor usable = logical_and(isfinite(largest), ne(largest, 0));
  const Tensor scale = where(usable, largest, 1.0);
  const Tensor squares = reduce_or_zero<reduction::SumSquares>(div(x, scale), set, kF64);
  return mul(sqrt(squares), scale);
}

}  // namespace

Tensor var(const Tensor& x, const Shape& axes, int correction, bool keepdim) {
  check_floating("var", x);
  const unsigned set = axis_set(axes, x.dim(), "var");
  Tensor y = cast(variance(x, axes, set, correction), x.dtype());
  return keepdim ? y : drop_axes(y, set);
}

Tensor std(const Tensor& x, const Shape& axes, int correction, bool keepdim) {
  check_floating("std", x);
  const unsigned set = axis_set(axes, x.dim(), "std");
  Tensor y = cast(sqrt(variance(x, axes, set, correction)), x.dtype());
  return keepdim ? y : drop_axes(y, set);
}

Tensor var_backward(const Tensor& dy, const Tensor& x, const Shape& axes, int correction) {
  const unsigned set = axis_set(axes, x.dim(), "var");
  const Tensor slope =
      mul(cast(dy, compute_dtype(x.dtype())), 2.0 / degrees(x.shape(), set, correction));
  return cast(mul(centered(x, axes), slope), x.dtype());
}

Tensor norm(const Tensor& x, Norm kind, const Shape& axes, bool keepdim) {
  check_floating("norm", x);
  const unsigned set = axis_set(axes, x.dim(), "norm");
  const DType compute = compute_dtype(x.dtype());
  Tensor y = kind == Norm::kL2   ? l2_norm(x, set)
             : kind == Norm::kL1 ? reduce_or_zero<reduction::SumAbs>(x, set, compute)
                                 : reduce_or_zero<reduction::MaxAbs>(x, set, compute);
  y = cast(y, x.dtype());
  return keepdim ? y : drop_axes(y, set);
}

}  // namespace lockstep::kernels
