// Floating-point operations of layers and steps. Pure functions.
//
// Convention, printed with every figure: a multiply-add counts as 2; only convolutions and matrix
// products count (no bias, norm, activation or optimizer).
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::bench {

inline constexpr const char* kFlopConvention =
    "2 per multiply-add; convolutions and matrix products only";

// C (m,n) = A (m,k) B (k,n), whichever of them is stored transposed.
inline std::int64_t gemm_flop(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2 * m * n * k;
}

struct ConvSize {
  std::int64_t batch, in_channels, out_channels;
  std::int64_t kernel_h, kernel_w, out_h, out_w;
  std::int64_t groups = 1;
};
// Each output value is a dot product over the input channels of its group.
inline std::int64_t conv_flop(const ConvSize& c) {
  return 2 * c.batch * c.out_channels * c.out_h * c.out_w * (c.in_channels / c.groups) *
         c.kernel_h * c.kernel_w;
}

inline double tflop_per_s(std::int64_t flop, double seconds) {
  return static_cast<double>(flop) / seconds / 1e12;
}

// Forward and backward of the recipe's network (models/toy_net.h) on `batch` images of 28x28. A
// layer's backward has two products of its forward's size; the first has no gradient of its input.
inline std::int64_t toy_net_step_flop(std::int64_t batch) {
  const std::int64_t first = conv_flop({batch, 1, 64, 3, 3, 26, 26});
  const std::int64_t others = conv_flop({batch, 64, 128, 3, 3, 24, 24}) +
                              conv_flop({batch, 128, 256, 3, 3, 10, 10}) +
                              conv_flop({batch, 256, 512, 3, 3, 8, 8}) +
                              gemm_flop(batch, 512, 8192) + gemm_flop(batch, 10, 512);
  return 2 * first + 3 * others;
}

}  // namespace lockstep::bench
