// The loaders of gemm_tile.cuh for the gradient of a convolution's input. Internal: device code.
#pragma once

#include "lockstep/kernels/conv2d_shape.cuh"
#include "lockstep/kernels/gemm_tile.cuh"

namespace lockstep::kernels::cuda {

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
