#include "lockstep/autograd/ops/slice.h"

#include <algorithm>

#include "lockstep/autograd/record.h"
#include "lockstep/core/check.h"
#include "lockstep/kernels/cast.h"

namespace lockstep {
namespace {

// Zeros of x's form, of which `part` takes the gradient.
struct Whole {
  Shape shape;
  MemoryFormat format;

  explicit Whole(const Variable& x) : shape(x.shape()), format(x.data().suggested_format()) {}
  Tensor zeros_for(const Tensor& dy) const {
    return zeros(shape, {dy.dtype(), dy.device(), format});
  }
};

}  // namespace

Variable slice(const Variable& x, std::int64_t axis, std::int64_t start, std::int64_t end,
               std::int64_t step) {
  return record("slice", x.data().slice(axis, start, end, step), inputs(x), [&](const Tensor&) {
    return [whole = Whole(x), axis, start, end, step](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        Tensor all = whole.zeros_for(dy);
        kernels::copy_into(all.slice(axis, start, end, step), dy);
        return all;
      });
    };
  });
}

Variable select(const Variable& x, std::int64_t axis, std::int64_t index) {
  return record("select", x.data().select(axis, index), inputs(x), [&](const Tensor&) {
    return [whole = Whole(x), axis, index](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] {
        Tensor all = whole.zeros_for(dy);
        kernels::copy_into(all.select(axis, index), dy);
        return all;
      });
    };
  });
}

Variable narrow(const Variable& x, std::int64_t axis, std::int64_t start, std::int64_t length) {
  const std::int64_t n = x.size(axis);
  LOCKSTEP_CHECK(start >= 0 && length >= 0 && start <= n - length,
                 "narrow: {} elements from {} on are not in axis {} of shape {}", length, start,
                 axis, x.shape());
  return slice(x, axis, start, start + length);
}

std::vector<Variable> split(const Variable& x, std::span<const std::int64_t> sizes,
                            std::int64_t axis) {
  std::int64_t total = 0;
  for (std::int64_t size : sizes) {
    LOCKSTEP_CHECK(size >= 0, "split: size {} is negative", size);
    total += size;
  }
  LOCKSTEP_CHECK(total == x.size(axis), "split: the sizes add up to {}, axis {} of shape {} has {}",
                 total, axis, x.shape(), x.size(axis));
  std::vector<Variable> pieces;
  std::int64_t at = 0;
  for (std::int64_t size : sizes) {
    pieces.push_back(narrow(x, axis, at, size));
    at += size;
  }
  return pieces;
}

std::vector<Variable> split(const Variable& x, std::int64_t size, std::int64_t axis) {
  LOCKSTEP_CHECK(size > 0, "split: expected a size of at least 1 but got {}", size);
  const std::int64_t n = x.size(axis);
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < n; at += size) sizes.push_back(std::min(size, n - at));
  if (n == 0) sizes.push_back(0);
  return split(x, sizes, axis);
}

std::vector<Variable> chunk(const Variable& x, std::int64_t chunks, std::int64_t axis) {
  LOCKSTEP_CHECK(chunks > 0, "chunk: expected at least 1 chunk but got {}", chunks);
  return split(x, std::max<std::int64_t>((x.size(axis) + chunks - 1) / chunks, 1), axis);
}

}  // namespace lockstep
