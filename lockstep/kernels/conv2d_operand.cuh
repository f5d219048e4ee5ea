// Loaders of gemm_tile.cuh that read a convolution's operands where they lie: no window is ever
// copied out. Internal: device code.
//
//   forward        y[(n,p,q), k]     = sum over (r,s,c) of windows of x times w[k, (r,s,c)]
//   data gradient  dx[(n,h,w), c]    = sum over (r,s,k) of windows of dy times w[(r,s,k), c]
//   weights        dw[k, (r,s,c)]    = sum over (n,p,q) of dy[(n,p,q), k] times windows of x
#pragma once

#include "lockstep/kernels/gemm_tile.cuh"

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

// The windows of dy that a pixel of x takes part in: (pixel of x, (r,s,k)).
template <class T>
struct WindowsOfY {
  static constexpr bool kAlongK = true;
  const T* dy = nullptr;
  ConvShape shape;
  std::uint64_t pixels = 0;
  std::uint64_t k = 0;
  bool vectors = false;

  struct Slot {
    const T* image = nullptr;  // null: no such pixel
    std::int32_t y = 0, x = 0;
  };

  __device__ __forceinline__ void select(unsigned group) { dy += group * shape.k; }

  __device__ __forceinline__ Slot slot(std::uint64_t outer) const {
    if (outer >= pixels) return {};
    const auto pixel = static_cast<std::uint32_t>(outer);
    const std::uint32_t row = pixel / shape.iw, column = pixel - row * shape.iw;
    const std::uint32_t image = row / shape.ih, line = row - image * shape.ih;
    return {dy + std::uint64_t{image} * shape.oh * shape.ow * shape.y_channels,
            static_cast<std::int32_t>(line) + shape.padding[0],
            static_cast<std::int32_t>(column) + shape.padding[1]};
  }

  __device__ __forceinline__ Quad<T> load(const Slot& slot, std::uint64_t first_k) const {
    Quad<T> quad = {};
    if (slot.image == nullptr || first_k >= k) return quad;
    const auto i = static_cast<std::uint32_t>(first_k);
    if (vectors) {
      if (const T* const at = element(slot, Tap::of(i, shape.k, shape.kw)))
        quad = load_vector<4>(at);
      return quad;
    }
#pragma unroll
    for (std::uint32_t j = 0; j < 4; ++j) {
      if (i + j >= k) break;
      if (const T* const at = element(slot, Tap::of(i + j, shape.k, shape.kw))) quad.value[j] = *at;
    }
    return quad;
  }

 private:
  // Null where no window lies so.
  __device__ __forceinline__ const T* element(const Slot& slot, const Tap& tap) const {
    const std::int32_t row = slot.y - static_cast<std::int32_t>(tap.r) * shape.dilation[0];
    const std::int32_t column = slot.x - static_cast<std::int32_t>(tap.s) * shape.dilation[1];
    if (row < 0 || column < 0) return nullptr;
    const auto p = static_cast<std::uint32_t>(row) / static_cast<std::uint32_t>(shape.stride[0]);
    const auto q = static_cast<std::uint32_t>(column) / static_cast<std::uint32_t>(shape.stride[1]);
    if (p * static_cast<std::uint32_t>(shape.stride[0]) != static_cast<std::uint32_t>(row) ||
        q * static_cast<std::uint32_t>(shape.stride[1]) != static_cast<std::uint32_t>(column) ||
        p >= shape.oh || q >= shape.ow)
      return nullptr;
    return slot.image + (std::uint64_t{p} * shape.ow + q) * shape.y_channels + tap.channel;
  }
};

// The weights (k, r, s, c) as (c, (r,s,k)).
template <class T>
struct TurnedWeights {
  static constexpr bool kAlongK = false;
  const T* w = nullptr;
  ConvShape shape;
  std::uint64_t taps = 0;  // r s c: from one k to the next
  std::uint64_t k = 0;
  bool vectors = false;

  struct Slot {
    std::uint32_t first = 0, inside = 0;
  };

  __device__ __forceinline__ void select(unsigned group) { w += group * shape.k * taps; }

  __device__ __forceinline__ Slot slot(std::uint64_t outer) const {
    const std::uint32_t left = outer < shape.c ? shape.c - static_cast<std::uint32_t>(outer) : 0;
    return {static_cast<std::uint32_t>(outer), left < 4 ? left : 4};
  }

  __device__ __forceinline__ Quad<T> load(const Slot& slot, std::uint64_t first_k) const {
    Quad<T> quad = {};
    if (slot.inside == 0 || first_k >= k) return quad;
    const auto i = static_cast<std::uint32_t>(first_k);
    const std::uint32_t tap = i / shape.k, channel = i - tap * shape.k;
    const T* const at = w + channel * taps + std::uint64_t{tap} * shape.c + slot.first;
    if (vectors && slot.inside == 4) return load_vector<4>(at);
#pragma unroll
    for (std::uint32_t j = 0; j < 4; ++j)
      if (j < slot.inside) quad.value[j] = at[j];
    return quad;
  }
};

}  // namespace lockstep::kernels::cuda
