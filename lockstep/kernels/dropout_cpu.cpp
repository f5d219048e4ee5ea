// Dropout on the CPU: one Philox block per four elements.
#include "lockstep/kernels/dropout.h"

#include <algorithm>

#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"

namespace lockstep::kernels {
namespace {

// x and y dense, in one order.
void mask_into(const Tensor& y, const Tensor& x, double p, const PhiloxSequence& sequence) {
  const std::int64_t n = x.numel(), blocks = (n + 3) / 4;
  // A number of 24 bits is below p exactly if its integer is below ceil(p 2^24).
  const double limit = p * 16777216.0;
  const auto below = static_cast<std::uint32_t>(limit);
  const std::uint32_t dropped = below + (static_cast<double>(below) < limit ? 1 : 0);
  visit_floating(x.dtype(), "dropout", [&]<class T>() {
    using A = Accumulator<T>;
    const A scale = p < 1 ? static_cast<A>(1 / (1 - p)) : A(0);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    parallel_for(blocks, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const PhiloxCounter bits = sequence.block(static_cast<std::uint64_t>(b));
        const std::int64_t count = std::min<std::int64_t>(4, n - 4 * b);
        for (std::int64_t k = 0; k < count; ++k)
          to[4 * b + k] = bits[static_cast<std::size_t>(k)] >> 8 >= dropped
                              ? static_cast<T>(static_cast<A>(from[4 * b + k]) * scale)
                              : static_cast<T>(A(0));
      }
    });
  });
}

}  // namespace

Tensor dropout_forward(const Tensor& given, double p, const PhiloxSequence& sequence) {
  const Tensor x = given.is_dense() ? given : given.contiguous();
  Tensor y = empty_like(x);
  mask_into(y, x, p, sequence);
  return y;
}

Tensor dropout_backward(const Tensor& given, const Strides& strides, double p,
                        const PhiloxSequence& sequence) {
  Tensor dx = empty(given.shape(), {given.dtype()}).as_strided(given.shape(), strides, 0);
  Tensor dy = given;
  if (dy.strides() != strides) {
    dy = empty_like(dx);
    copy_elements(dy, given);
  }
  mask_into(dx, dy, p, sequence);
  return dx;
}

}  // namespace lockstep::kernels
