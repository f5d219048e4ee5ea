#include "lockstep/autograd/ops/extremum.h"

#include "lockstep/autograd/record.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/compare.h"
#include "lockstep/kernels/extremum.h"
#include "lockstep/kernels/index.h"
#include "lockstep/kernels/reduction.h"
#include "lockstep/kernels/sum.h"

namespace lockstep {
namespace {

using kernels::ValuesAndIndices;

// dy shared evenly between the elements of x that equal the extremum y (both NaN count as equal).
Tensor share_between_ties(const Tensor& dy, const Tensor& y, const Tensor& x, const Shape& axes) {
  const Tensor both_nan = kernels::logical_and(kernels::isnan(x), kernels::isnan(y));
  const Tensor ties = kernels::logical_or(kernels::eq(x, y), both_nan);
  const Tensor share = kernels::div(dy, kernels::sum(ties, axes, true));
  return kernels::where(ties, share, 0.0);
}

Variable extremum(const char* name, Tensor result, const Variable& x, const Shape& axes) {
  return record(name, std::move(result), inputs(x), [&](const Tensor& y) {
    const unsigned set = kernels::axis_set(axes, x.dim(), name);
    return [x = SavedTensor(x.data()), y = SavedTensor(y), axes,
            kept = kernels::reduced_shape(x.shape(), set, true)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        return share_between_ties(dy.reshape(kept), y.get().reshape(kept), x.get(), axes);
      });
    };
  });
}

std::pair<Variable, Variable> along(const char* name, ValuesAndIndices found, const Variable& x,
                                    std::int64_t axis, bool keepdim) {
  const int a = normalize_axis(axis, x.dim(), name);
  Variable values = record(name, found.values, inputs(x), [&](const Tensor&) {
    return [shape = x.shape(), index = SavedTensor(found.indices), a, keepdim](const Tensor& dy,
                                                                               Gradients& dx) {
      dx.set(0, [&] {
        const bool whole = keepdim || shape.rank() == 0;
        return kernels::gather_backward(whole ? dy : dy.unsqueeze(a), shape, a,
                                        whole ? index.get() : index.get().unsqueeze(a));
      });
    };
  });
  return {std::move(values), Variable(std::move(found.indices))};
}

Tensor flat(const Variable& x) { return x.data().reshape({x.numel()}); }

}  // namespace

Variable amax(const Variable& x, const Shape& axes, bool keepdim) {
  return extremum("amax", kernels::amax(x.data(), axes, keepdim), x, axes);
}
Variable amin(const Variable& x, const Shape& axes, bool keepdim) {
  return extremum("amin", kernels::amin(x.data(), axes, keepdim), x, axes);
}
Variable max(const Variable& x) { return amax(x); }
Variable min(const Variable& x) { return amin(x); }

std::pair<Variable, Variable> max(const Variable& x, std::int64_t axis, bool keepdim) {
  return along("max", kernels::max_along(x.data(), axis, keepdim), x, axis, keepdim);
}
std::pair<Variable, Variable> min(const Variable& x, std::int64_t axis, bool keepdim) {
  return along("min", kernels::min_along(x.data(), axis, keepdim), x, axis, keepdim);
}

Variable argmax(const Variable& x) { return kernels::max_along(flat(x), 0).indices; }
Variable argmax(const Variable& x, std::int64_t axis, bool keepdim) {
  return kernels::max_along(x.data(), axis, keepdim).indices;
}
Variable argmin(const Variable& x) { return kernels::min_along(flat(x), 0).indices; }
Variable argmin(const Variable& x, std::int64_t axis, bool keepdim) {
  return kernels::min_along(x.data(), axis, keepdim).indices;
}

Variable any(const Variable& x, const Shape& axes, bool keepdim) {
  return kernels::any(x.data(), axes, keepdim);
}
Variable all(const Variable& x, const Shape& axes, bool keepdim) {
  return kernels::all(x.data(), axes, keepdim);
}

}  // namespace lockstep
