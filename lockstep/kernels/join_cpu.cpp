#include "lockstep/core/check.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/join.h"
#include "lockstep/kernels/loop_plan.h"
#include "lockstep/kernels/promote.h"

namespace lockstep::kernels {

Tensor cat(std::span<const Tensor> tensors, std::int64_t axis) {
  LOCKSTEP_CHECK(!tensors.empty(), "cat: expected at least one tensor");
  const Tensor& first = tensors[0];
  LOCKSTEP_CHECK(first.dim() > 0, "cat: a tensor without dimensions has no axis; use stack");
  const int a = normalize_axis(axis, first.dim(), "cat");
  Shape shape = first.shape();
  DType dtype = first.dtype();
  shape[a] = 0;
  for (const Tensor& t : tensors) {
    bool fits = t.dim() == first.dim();
    for (int i = 0; fits && i < first.dim(); ++i) fits = i == a || t.shape()[i] == shape[i];
    LOCKSTEP_CHECK(fits, "cat: shapes {} and {} differ beyond axis {}", first.shape(), t.shape(),
                   a);
    shape[a] += t.shape()[a];
    dtype = promote(dtype, t.dtype());
  }
  for (const Tensor& t : tensors) common_device("cat", {&first, &t});
  Tensor y = empty(shape, {dtype, first.device(), layout_of(first)});
  std::int64_t at = 0;
  for (const Tensor& t : tensors) {
    copy_into(y.slice(a, at, at + t.shape()[a]), t);
    at += t.shape()[a];
  }
  return y;
}

Tensor pad(const Tensor& x, const Shape& borders, double value) {
  LOCKSTEP_CHECK(borders.rank() % 2 == 0 && borders.rank() / 2 <= x.dim(),
                 "pad: expected pairs (before, after) for at most {} axes but got {}", x.dim(),
                 borders);
  Shape shape = x.shape();
  for (int i = 0; i < borders.rank(); ++i) {
    LOCKSTEP_CHECK(borders[i] >= 0, "pad: border {} of {} is negative", borders[i], borders);
    shape[x.dim() - 1 - i / 2] += borders[i];
  }
  Tensor y = empty(shape, {x.dtype(), x.device(), layout_of(x)});
  fill(y, value);
  copy_into(unpad(y, borders), x);
  return y;
}

Tensor unpad(const Tensor& dy, const Shape& borders) {
  Tensor inside = dy;
  for (int i = 0; i < borders.rank(); i += 2) {
    const int axis = dy.dim() - 1 - i / 2;
    inside = inside.slice(axis, borders[i], dy.shape()[axis] - borders[i + 1]);
  }
  return inside;
}

}  // namespace lockstep::kernels
