#include "lockstep/autograd/ops/join.h"

#include "lockstep/autograd/ops/view.h"
#include "lockstep/autograd/record.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/join.h"

namespace lockstep {

Variable cat(std::span<const Variable> parts, std::int64_t axis) {
  std::vector<Tensor> tensors;
  for (const Variable& v : parts) tensors.push_back(v.data());
  return record("cat", kernels::cat(tensors, axis), parts, [&](const Tensor& y) {
    struct Part {
      std::int64_t size;
      DType dtype;
    };
    const int a = normalize_axis(axis, y.dim(), "cat");
    std::vector<Part> sizes;
    for (const Tensor& t : tensors) sizes.push_back({t.shape()[a], t.dtype()});
    return [sizes = std::move(sizes), a](const Tensor& dy, Gradients& dx) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        dx.set(static_cast<int>(i),
               [&] { return kernels::cast(dy.slice(a, at, at + sizes[i].size), sizes[i].dtype); });
        at += sizes[i].size;
      }
    };
  });
}

Variable stack(std::span<const Variable> parts, std::int64_t axis) {
  LOCKSTEP_CHECK(!parts.empty(), "stack: expected at least one tensor");
  std::vector<Variable> raised;
  for (const Variable& v : parts) {
    LOCKSTEP_CHECK(v.shape() == parts[0].shape(), "stack: shapes {} and {} differ",
                   parts[0].shape(), v.shape());
    raised.push_back(unsqueeze(v, axis));
  }
  return cat(raised, axis);
}

Variable pad(const Variable& x, const Shape& borders, double value) {
  return record("pad", kernels::pad(x.data(), borders, value), inputs(x), [&](const Tensor&) {
    return [borders](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return kernels::unpad(dy, borders); });
    };
  });
}

}  // namespace lockstep
