#include "lockstep/kernels/index.h"

#include <cstring>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/loop_plan.h"
#include "lockstep/kernels/promote.h"
#include "lockstep/kernels/rows.h"

namespace lockstep::kernels {
namespace {

// Contiguous i64 indices, each within [0, n).
Tensor checked_index(const char* name, const Tensor& index, std::int64_t n) {
  LOCKSTEP_CHECK(index.dtype() == kI64 || index.dtype() == kI32,
                 "{}: expected i64 or i32 indices but got {}", name, index.dtype());
  require_cpu(name, {&index});
  const Tensor wide = cast(index, kI64).contiguous();
  const std::int64_t* p = wide.data<std::int64_t>();
  for (std::int64_t i = 0, count = wide.numel(); i < count; ++i)
    LOCKSTEP_CHECK(p[i] >= 0 && p[i] < n, "{}: index {} at position {} is outside [0, {})", name,
                   p[i], i, n);
  return wide;
}

void check_gather(const Tensor& index, const Shape& shape, int axis) {
  LOCKSTEP_CHECK(index.dim() == shape.rank(), "gather: an index of shape {} for a tensor of {}",
                 index.shape(), shape);
  for (int i = 0; i < shape.rank(); ++i)
    LOCKSTEP_CHECK(i == axis || index.shape()[i] <= shape[i],
                   "gather: an index of shape {} for a tensor of {}", index.shape(), shape);
}

// Calls f(row of the index, x's offset) for each row along `axis`: the index is walked in rows with
// the axis last, `strides` are those of the indexed tensor.
template <class F>
void for_index_rows(const Shape& index_shape, const Strides& strides, int axis, F&& f) {
  const Shape outer = index_shape.erased(axis);
  const Strides steps = strides.erased(axis);
  const std::int64_t rows = outer.numel();
  parallel_for(rows, row_grain(index_shape[axis]), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      std::int64_t offset = 0, rest = r;
      for (int i = outer.rank() - 1; i >= 0; --i) {
        offset += rest % outer[i] * steps[i];
        rest /= outer[i];
      }
      f(r, offset);
    }
  });
}

}  // namespace

Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index) {
  LOCKSTEP_CHECK(
      x.dim() > 0 && index.dim() == 1,
      "index_select: expected a 1-D index and a tensor with dimensions but got {} and {}",
      index.shape(), x.shape());
  require_cpu("index_select", {&x, &index});
  const int a = normalize_axis(axis, x.dim(), "index_select");
  const Tensor wide = checked_index("index_select", index, x.shape()[a]);
  const std::int64_t* at = wide.data<std::int64_t>();
  const std::int64_t n = wide.numel();
  Shape shape = x.shape();
  shape[a] = n;
  Tensor y = empty(shape, {x.dtype(), x.device(), layout_of(x)});
  if (y.numel() == 0) return y;
  const bool blocks = a == 0 && x.is_contiguous();
  const std::size_t bytes = blocks ? y.nbytes() / static_cast<std::size_t>(n) : 0;
  parallel_for(n, row_grain(y.numel() / n), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      if (blocks)
        std::memcpy(static_cast<char*>(y.data()) + static_cast<std::size_t>(i) * bytes,
                    static_cast<const char*>(x.data()) + static_cast<std::size_t>(at[i]) * bytes,
                    bytes);
      else
        copy_elements(y.select(a, i), x.select(a, at[i]));
    }
  });
  return y;
}

Tensor index_select_backward(const Tensor& dy, const Shape& shape, std::int64_t axis,
                             const Tensor& index) {
  require_cpu("index_select", {&dy, &index});
  const int a = normalize_axis(axis, shape.rank(), "index_select");
  const Tensor wide = checked_index("index_select", index, shape[a]);
  const DType compute = compute_dtype(dy.dtype());
  Tensor dx = zeros(shape, {compute, dy.device()});
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    const Tensor row = dx.select(a, wide.data<std::int64_t>()[i]);
    add_into(row, row, dy.select(a, i));
  }
  return cast(dx, dy.dtype());
}

Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index) {
  const int a = normalize_axis(axis, x.dim(), "gather");
  if (x.dim() == 0) return gather(x.unsqueeze(0), 0, index.reshape({1})).view({});
  check_gather(index, x.shape(), a);
  const Tensor wide = checked_index("gather", to_rows(index, a), x.shape()[a]);
  Tensor rows = empty(wide.shape(), {x.dtype(), x.device()});
  const std::int64_t length = index.shape()[a], step = x.strides()[a];
  visit_dtype(x.dtype(), [&]<class T>() {
    for_index_rows(index.shape(), x.strides(), a, [&](std::int64_t r, std::int64_t offset) {
      const std::int64_t* at = wide.data<std::int64_t>() + r * length;
      T* y = rows.data<T>() + r * length;
      for (std::int64_t j = 0; j < length; ++j) y[j] = x.data<T>()[offset + at[j] * step];
    });
  });
  return from_rows(rows, a, empty(index.shape(), {x.dtype()}));
}

Tensor gather_backward(const Tensor& dy, const Shape& shape, std::int64_t axis,
                       const Tensor& index) {
  const int a = normalize_axis(axis, shape.rank(), "gather");
  if (shape.rank() == 0)
    return gather_backward(dy.reshape({1}), {1}, 0, index.reshape({1})).view({});
  check_gather(index, shape, a);
  const Tensor wide = checked_index("gather", to_rows(index, a), shape[a]);
  const DType compute = compute_dtype(dy.dtype());
  const Tensor rows = to_rows(cast(dy, compute), a);
  Tensor dx = zeros(shape, {compute, dy.device()});
  const std::int64_t length = index.shape()[a], step = dx.strides()[a];
  visit_floating(compute, "gather", [&]<class T>() {
    for_index_rows(index.shape(), dx.strides(), a, [&](std::int64_t r, std::int64_t offset) {
      const std::int64_t* at = wide.data<std::int64_t>() + r * length;
      const T* from = rows.data<T>() + r * length;
      for (std::int64_t j = 0; j < length; ++j) {
        T& to = dx.data<T>()[offset + at[j] * step];
        to = to + from[j];
      }
    });
  });
  return cast(dx, dy.dtype());
}

}  // namespace lockstep::kernels
