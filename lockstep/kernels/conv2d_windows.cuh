// The loader of gemm_tile.cuh that reads windows of x where they lie: none is ever copied out. For
// forward, and for the gradient of the weights. Internal: device code.
#pragma once

#include "lockstep/kernels/conv2d_shape.cuh"
#include "lockstep/kernels/gemm_tile.cuh"

namespace lockstep::kernels::cuda {

// The windows of x: (pixel of y, tap) or, for the gradient of the weights, (tap, pixel of y). A
// quad lies along the taps in both: c is fastest.
template <class T, bool taps_are_k>
struct WindowsOfX {
  static constexpr bool kAlongK = taps_are_k;
  const T* x = nullptr;
  ConvShape shape;
  std::uint64_t pixels = 0, taps = 0;
  std::uint64_t k = 0;
  bool vectors = false;  // the group's channels are a multiple of 4, and aligned

  struct Place {
    const T* image = nullptr;
    std::int32_t y = 0, x = 0;  // of the window's first tap
  };
  struct Slot {
    Place place;  // taps_are_k: of the pixel
    Tap tap;      // otherwise: the quad's first
    std::uint32_t first = 0;
    bool inside = false;
  };

  __device__ __forceinline__ void select(unsigned group) { x += group * shape.c; }

  __device__ __forceinline__ Slot slot(std::uint64_t outer) const {
    Slot slot;
    slot.inside = outer < (taps_are_k ? pixels : taps);
    slot.first = static_cast<std::uint32_t>(outer);
    if (!slot.inside) return slot;
    if constexpr (taps_are_k)
      slot.place = place_of(slot.first);
    else
      slot.tap = Tap::of(slot.first, shape.c, shape.kw);
    return slot;
  }

  __device__ __forceinline__ Quad<T> load(const Slot& slot, std::uint64_t first_k) const {
    Quad<T> quad = {};
    if (!slot.inside || first_k >= k) return quad;
    const auto i = static_cast<std::uint32_t>(first_k);
    const Place place = taps_are_k ? slot.place : place_of(i);
    const std::uint32_t first = taps_are_k ? i : slot.first;
    const Tap tap = taps_are_k ? Tap::of(i, shape.c, shape.kw) : slot.tap;
    if (vectors) {  // then all four are of one tap
      if (const T* const at = element(place, tap)) quad = load_vector<4>(at);
      return quad;
    }
#pragma unroll
    for (std::uint32_t j = 0; j < 4; ++j) {
      if (first + j >= taps) break;
      const T* const at = element(place, j == 0 ? tap : Tap::of(first + j, shape.c, shape.kw));
      if (at != nullptr) quad.value[j] = *at;
    }
    return quad;
  }

 private:
  __device__ __forceinline__ Place place_of(std::uint32_t pixel) const {
    const std::uint32_t row = pixel / shape.ow, column = pixel - row * shape.ow;
    const std::uint32_t image = row / shape.oh, line = row - image * shape.oh;
    return {x + std::uint64_t{image} * shape.ih * shape.iw * shape.x_channels,
            static_cast<std::int32_t>(line) * shape.stride[0] - shape.padding[0],
            static_cast<std::int32_t>(column) * shape.stride[1] - shape.padding[1]};
  }

  // Null outside the image.
  __device__ __forceinline__ const T* element(const Place& place, const Tap& tap) const {
    const auto row =
        static_cast<std::uint32_t>(place.y + static_cast<std::int32_t>(tap.r) * shape.dilation[0]);
    const auto column =
        static_cast<std::uint32_t>(place.x + static_cast<std::int32_t>(tap.s) * shape.dilation[1]);
    if (row >= shape.ih || column >= shape.iw) return nullptr;
    return place.image + (std::uint64_t{row} * shape.iw + column) * shape.x_channels + tap.channel;
  }
};

}  // namespace lockstep::kernels::cuda
