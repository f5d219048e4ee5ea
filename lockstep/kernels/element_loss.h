// The frame of the losses that compare element with element: checks, order, reduction. Internal.
#pragma once

#include <algorithm>
#include <vector>

#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/loss_options.h"

namespace lockstep::kernels {

// Same shape and dtype, or an Error that names both.
inline void check_pair(const Tensor& x, const Tensor& target, const char* op) {
  LOCKSTEP_CHECK(x.shape() == target.shape(),
                 "{}: input has shape {} but target has shape {}; nothing is broadcast here", op,
                 x.shape(), target.shape());
  LOCKSTEP_CHECK(x.dtype() == target.dtype(), "{}: input is {} but target is {}", op, x.dtype(),
                 target.dtype());
}

// Tensors of one shape brought to one dense order of elements: the first one's if it is dense.
template <std::size_t N>
std::array<Tensor, N> in_one_order(std::array<Tensor, N> tensors) {
  const Tensor first = tensors[0].is_dense() ? tensors[0] : tensors[0].contiguous();
  for (Tensor& t : tensors) {
    if (t.strides() == first.strides()) continue;
    Tensor copy = empty_like(first, t.dtype());
    copy_elements(copy, t);
    t = copy;
  }
  return tensors;
}

// out[i] = l(i) for kNone; else the sum of l over n elements, blocks of 4096 in f64 added in
// order, over n for kMean (0 where n is 0). `like` gives dtype, shape and order of out.
template <class T, class Loss>
Tensor reduce_elements(const Tensor& like, Reduction reduction, const Loss& l) {
  using A = Accumulator<T>;
  const std::int64_t n = like.numel();
  constexpr std::int64_t kBlock = 4096;
  if (reduction == Reduction::kNone) {
    Tensor out = empty_like(like);
    parallel_for(n, kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out.data<T>()[i] = static_cast<T>(l(i));
    });
    return out;
  }
  std::vector<double> partial(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
  parallel_for(static_cast<std::int64_t>(partial.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t b = begin; b < end; ++b) {
                   double sum = 0;
                   for (std::int64_t i = b * kBlock; i < std::min(n, (b + 1) * kBlock); ++i)
                     sum += static_cast<double>(l(i));
                   partial[static_cast<std::size_t>(b)] = sum;
                 }
               });
  double sum = 0;
  for (double p : partial) sum += p;
  if (reduction == Reduction::kMean && n > 0) sum /= static_cast<double>(n);
  return full({}, static_cast<A>(sum), {like.dtype()});
}

// dx[i] = g slope(i), g the loss' gradient: the element's for kNone, over n for kMean. `dloss` must
// be in `like`'s order for kNone.
template <class T, class Slope>
Tensor scale_elements(const Tensor& like, const Tensor& dloss, Reduction reduction,
                      const Slope& slope) {
  using A = Accumulator<T>;
  const std::int64_t n = like.numel();
  const bool each = reduction == Reduction::kNone;
  A common = each ? A(0) : static_cast<A>(*dloss.data<T>());
  if (reduction == Reduction::kMean && n > 0) common /= static_cast<A>(n);
  Tensor dx = empty_like(like);
  parallel_for(n, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      dx.data<T>()[i] =
          static_cast<T>((each ? static_cast<A>(dloss.data<T>()[i]) : common) * slope(i));
  });
  return dx;
}

inline void check_loss_gradient(const Tensor& dloss, const Tensor& x, Reduction reduction,
                                const char* op) {
  const Shape wanted = reduction == Reduction::kNone ? x.shape() : Shape{};
  LOCKSTEP_CHECK(dloss.shape() == wanted && dloss.dtype() == x.dtype(),
                 "{}: gradient of the loss is {} {}, expected {} {}", op, dloss.dtype(),
                 dloss.shape(), x.dtype(), wanted);
}

}  // namespace lockstep::kernels
