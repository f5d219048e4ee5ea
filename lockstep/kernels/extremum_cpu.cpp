#include "lockstep/kernels/extremum.h"

#include <algorithm>

#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/compare.h"
#include "lockstep/kernels/extremum_cuda.h"
#include "lockstep/kernels/loop_plan.h"
#include "lockstep/kernels/promote.h"
#include "lockstep/kernels/reduction_math.h"

namespace lockstep::kernels {
namespace {

template <class Op>
Tensor extremum(const char* name, const Tensor& x, const Shape& axes, bool keepdim) {
  const unsigned set = axis_set(axes, x.dim(), name);
  LOCKSTEP_CHECK(
      reduced_count(x.shape(), set) > 0 || reduced_shape(x.shape(), set, true).numel() == 0,
      "{}: nothing to choose from in shape {} over axes {}", name, x.shape(), axes);
  const DType compute = compute_dtype(x.dtype());
  Tensor y = reduce_to(x, set, compute, reduction_loops<Op>(compute), x.dtype());
  return keepdim ? y : drop_axes(y, set);
}

struct Greater {
  template <class A>
  bool operator()(A x, A best) const {
    return x > best;
  }
};
struct Smaller {
  template <class A>
  bool operator()(A x, A best) const {
    return x < best;
  }
};

// One element of the result: the first that is better than all before, or the first NaN.
template <class T, class Better>
void scan(const T* x, std::int64_t n, std::int64_t stride, T* value, std::int64_t* index) {
  using A = std::conditional_t<is_floating(kDTypeOf<T>), Accumulator<T>, T>;
  A best = static_cast<A>(x[0]);
  std::int64_t at = 0;
  for (std::int64_t i = 1; i < n && best == best; ++i) {
    const A v = static_cast<A>(x[i * stride]);
    if (Better()(v, best) || v != v) {
      best = v;
      at = i;
    }
  }
  *value = x[at * stride];
  *index = at;
}

template <class Better>
ValuesAndIndices along(const char* name, const Tensor& x, std::int64_t axis, bool keepdim) {
  const int a = normalize_axis(axis, x.dim(), name);
  const Tensor rows = x.dim() == 0 ? x.unsqueeze(0) : x;
  const std::int64_t n = rows.shape()[a], step = rows.strides()[a];
  const Shape shape = rows.shape().erased(a);
  LOCKSTEP_CHECK(n > 0 || shape.numel() == 0, "{}: axis {} of shape {} is empty", name, a,
                 x.shape());
  ValuesAndIndices out{empty(shape, {x.dtype(), x.device()}), empty(shape, {kI64, x.device()})};
  const auto result = [&] {
    if (!keepdim || x.dim() == 0) return out;
    return ValuesAndIndices{out.values.unsqueeze(a), out.indices.unsqueeze(a)};
  };
  if (shape.numel() == 0) return result();
  if constexpr (kHasCuda) {
    if (x.device().is_cuda()) {
      cuda::extremum_along(rows, a, std::is_same_v<Better, Greater>, out.values, out.indices);
      return result();
    }
  }
  const Strides strides = rows.strides().erased(a);
  const PlanOperand operands[] = {{&shape, &out.values.strides()}, {&shape, &strides}};
  const LoopPlan plan = plan_loop(shape, operands);
  const std::int64_t run = plan.run(), ys = plan.stride[0][0], xs = plan.stride[0][1];
  visit_dtype(x.dtype(), [&]<class T>() {
    const std::int64_t grain = std::max<std::int64_t>(16384 / (n * run), 1);
    parallel_for(plan.rows(), grain, [&](std::int64_t first, std::int64_t last) {
      RowCursor row(plan, first);
      for (std::int64_t r = first; r < last; ++r, row.next())
        for (std::int64_t k = 0; k < run; ++k)
          scan<T, Better>(rows.data<T>() + row.offset(1) + k * xs, n, step,
                          out.values.data<T>() + row.offset(0) + k * ys,
                          out.indices.data<std::int64_t>() + row.offset(0) + k * ys);
    });
  });
  return result();
}

template <class Op>
Tensor truth(const char* name, const Tensor& x, const Shape& axes, bool keepdim, bool of_nothing) {
  const unsigned set = axis_set(axes, x.dim(), name);
  const Tensor is_true = ne(x, 0);
  Tensor y;
  if (reduced_count(x.shape(), set) == 0)
    y = full(reduced_shape(x.shape(), set, true), of_nothing ? 1 : 0, {DType::kBool, x.device()});
  else
    y = reduce_to(is_true, set, kI64, reduction_loops<Op>(kI64), DType::kBool);
  return keepdim ? y : drop_axes(y, set);
}

}  // namespace

Tensor amax(const Tensor& x, const Shape& axes, bool keepdim) {
  return extremum<reduction::Max>("amax", x, axes, keepdim);
}
Tensor amin(const Tensor& x, const Shape& axes, bool keepdim) {
  return extremum<reduction::Min>("amin", x, axes, keepdim);
}
ValuesAndIndices max_along(const Tensor& x, std::int64_t axis, bool keepdim) {
  return along<Greater>("max", x, axis, keepdim);
}
ValuesAndIndices min_along(const Tensor& x, std::int64_t axis, bool keepdim) {
  return along<Smaller>("min", x, axis, keepdim);
}
Tensor any(const Tensor& x, const Shape& axes, bool keepdim) {
  return truth<reduction::Max>("any", x, axes, keepdim, false);
}
Tensor all(const Tensor& x, const Shape& axes, bool keepdim) {
  return truth<reduction::Min>("all", x, axes, keepdim, true);
}

}  // namespace lockstep::kernels
