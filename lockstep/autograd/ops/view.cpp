#include "lockstep/autograd/ops/view.h"

#include <vector>

#include "lockstep/autograd/record.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/sum.h"

namespace lockstep {
namespace {

// For all that only gives the elements another shape in the same order.
Variable reshaped(const char* name, const Variable& x, Tensor y) {
  return record(name, std::move(y), inputs(x), [&](const Tensor&) {
    return [shape = x.shape()](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return dy.reshape(shape); });
    };
  });
}

// For copies: the gradient passes as it is.
Variable same(const char* name, const Variable& x, Tensor y) {
  return record(name, std::move(y), inputs(x), [](const Tensor&) {
    return [](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return dy; }); };
  });
}

}  // namespace

Variable view(const Variable& x, const Shape& shape) {
  return reshaped("view", x, x.data().view(shape));
}

Variable reshape(const Variable& x, const Shape& shape) {
  return reshaped("reshape", x, x.data().reshape(shape));
}

Variable flatten(const Variable& x, std::int64_t start, std::int64_t end) {
  const int first = normalize_axis(start, x.dim(), "flatten");
  const int last = normalize_axis(end, x.dim(), "flatten");
  LOCKSTEP_CHECK(first <= last, "flatten: axis {} comes after axis {}", start, end);
  Shape shape;
  for (int i = 0; i < first; ++i) shape.push_back(x.shape()[i]);
  std::int64_t joined = 1;
  for (int i = first; i <= last && i < x.dim(); ++i) joined *= x.shape()[i];
  shape.push_back(joined);
  for (int i = last + 1; i < x.dim(); ++i) shape.push_back(x.shape()[i]);
  return reshaped("flatten", x, x.data().reshape(shape));
}

Variable permute(const Variable& x, std::span<const int> axes) {
  return record("permute", x.data().permute(axes), inputs(x), [&](const Tensor&) {
    std::vector<int> back(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i)
      back[static_cast<std::size_t>(normalize_axis(axes[i], x.dim(), "permute"))] =
          static_cast<int>(i);
    return [back = std::move(back)](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return dy.permute(back); });
    };
  });
}

Variable transpose(const Variable& x, std::int64_t a, std::int64_t b) {
  return record("transpose", x.data().transpose(a, b), inputs(x), [&](const Tensor&) {
    return
        [a, b](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return dy.transpose(a, b); }); };
  });
}

Variable t(const Variable& x) {
  return record("t", x.data().t(), inputs(x), [&](const Tensor&) {
    return [](const Tensor& dy, Gradients& dx) { dx.set(0, [&] { return dy.t(); }); };
  });
}

Variable squeeze(const Variable& x, std::int64_t axis) {
  return reshaped("squeeze", x, x.data().squeeze(axis));
}

Variable unsqueeze(const Variable& x, std::int64_t axis) {
  return reshaped("unsqueeze", x, x.data().unsqueeze(axis));
}

Variable expand(const Variable& x, const Shape& shape) {
  return record("expand", x.data().expand(shape), inputs(x), [&](const Tensor&) {
    return [from = x.shape()](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::sum_to(dy, from); });
    };
  });
}

Variable clone(const Variable& x) { return same("clone", x, x.data().clone()); }

Variable contiguous(const Variable& x, MemoryFormat format) {
  if (x.data().is_contiguous(format)) return x;
  return same("contiguous", x, x.data().contiguous(format));
}

Variable channels_last(const Variable& x) { return contiguous(x, MemoryFormat::kChannelsLast); }

}  // namespace lockstep
