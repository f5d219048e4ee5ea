// A convolution as its loaders see it. Internal: device code.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace lockstep::kernels::cuda {

// Divisions on the device are of 32 bits: the host hands over at most 2^31 pixels at a time.
struct ConvShape {
  std::uint32_t ih, iw, oh, ow, kw;
  std::uint32_t x_channels, y_channels;  // of all groups
  std::uint32_t c, k;                    // channels of one group of x and of y
  std::int32_t stride[2] = {}, padding[2] = {}, dilation[2] = {};
};

// Where a window's tap lies.
struct Tap {
  std::uint32_t r, s, channel;

  static __device__ __forceinline__ Tap of(std::uint32_t i, std::uint32_t channels,
                                           std::uint32_t kw) {
    const std::uint32_t tap = i / channels, r = tap / kw;
    return {r, tap - r * kw, i - tap * channels};
  }
};

}  // namespace lockstep::kernels::cuda
