#include "lockstep/kernels/max_pool2d_simd.h"

#include "lockstep/kernels/element_simd.h"

namespace lockstep::kernels::LOCKSTEP_ISA {
namespace {

constexpr std::int64_t kBlock = 64;  // channels whose maxima are kept in registers

struct Range {
  std::int64_t begin, end;
};

// The taps of output position o that lie inside [0, size).
LOCKSTEP_ELEMENT_FN Range inside(std::int64_t o, std::int64_t size, std::int64_t kernel,
                                 std::int64_t stride, std::int64_t padding, std::int64_t dilation) {
  const std::int64_t start = o * stride - padding;
  const std::int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  const std::int64_t room = size - start;
  const std::int64_t last = room <= 0 ? 0 : (room + dilation - 1) / dilation;
  return {first, smaller(kernel, last)};
}

// One output pixel, `count` channels; kFull: count is kBlock and known to the compiler.
template <class T, class A, bool kFull>
LOCKSTEP_ELEMENT_FN void pool_block(const T* x, T* y, std::int64_t y_c, std::uint8_t* taps,
                                    const PoolWindows& p, std::int64_t y0, std::int64_t x0,
                                    Range ky, Range kx, std::int64_t some) {
  const std::int64_t count = kFull ? kBlock : some;
  A best[kBlock];
  std::int32_t at[kBlock];
  bool first = true;
  for (std::int64_t i = ky.begin; i < ky.end; ++i)
    for (std::int64_t j = kx.begin; j < kx.end; ++j) {
      const T* from = x + ((y0 + i * p.dilation[0]) * p.w + x0 + j * p.dilation[1]) * p.c;
      const auto tap = static_cast<std::int32_t>(i * p.kernel[1] + j);
      if (first) {
        for (std::int64_t c = 0; c < count; ++c) {
          best[c] = load(from[c]);
          at[c] = tap;
        }
        first = false;
        continue;
      }
      for (std::int64_t c = 0; c < count; ++c) {
        const A v = load(from[c]);
        const bool takes = !(v <= best[c]) && best[c] == best[c];  // a NaN stays
        best[c] = takes ? v : best[c];
        at[c] = takes ? tap : at[c];
      }
    }
  if (y_c == 1)
    for (std::int64_t c = 0; c < count; ++c) store(y + c, best[c]);
  else
    for (std::int64_t c = 0; c < count; ++c) store(y + c * y_c, best[c]);
  for (std::int64_t c = 0; c < count; ++c) taps[c] = static_cast<std::uint8_t>(at[c]);
}

struct Forward {
  const void* x;
  void* y;
  std::uint8_t* taps;
  const PoolWindows& p;
  const PooledStrides& strides;
  std::int64_t begin, end;

  template <class T, class A>
  void run() const {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / p.oh, oy = row % p.oh;
      const T* image = static_cast<const T*>(x) + n * p.h * p.w * p.c;
      T* out = static_cast<T*>(y) + n * strides.n + oy * strides.y;
      std::uint8_t* out_taps = taps + row * p.ow * p.c;
      const Range ky = inside(oy, p.h, p.kernel[0], p.stride[0], p.padding[0], p.dilation[0]);
      for (std::int64_t ox = 0; ox < p.ow; ++ox, out += strides.x, out_taps += p.c) {
        const Range kx = inside(ox, p.w, p.kernel[1], p.stride[1], p.padding[1], p.dilation[1]);
        const std::int64_t y0 = oy * p.stride[0] - p.padding[0];
        const std::int64_t x0 = ox * p.stride[1] - p.padding[1];
        std::int64_t c = 0;
        for (; c + kBlock <= p.c; c += kBlock)
          pool_block<T, A, true>(image + c, out + c * strides.c, strides.c, out_taps + c, p, y0, x0,
                                 ky, kx, kBlock);
        if (c < p.c)
          pool_block<T, A, false>(image + c, out + c * strides.c, strides.c, out_taps + c, p, y0,
                                  x0, ky, kx, p.c - c);
      }
    }
  }
};

template <class T, class A, bool kOverlap, bool kFull>
LOCKSTEP_ELEMENT_FN void unpool_block(const T* dy, std::int64_t dy_c, const std::uint8_t* taps,
                                      void* dx, const PoolWindows& p, std::int64_t y0,
                                      std::int64_t x0, Range ky, Range kx, std::int64_t some) {
  const std::int64_t count = kFull ? kBlock : some;
  A g[kBlock];
  std::int32_t at[kBlock];
  if (dy_c == 1)
    for (std::int64_t c = 0; c < count; ++c) g[c] = load(dy[c]);
  else
    for (std::int64_t c = 0; c < count; ++c) g[c] = load(dy[c * dy_c]);
  for (std::int64_t c = 0; c < count; ++c) at[c] = taps[c];
  for (std::int64_t i = ky.begin; i < ky.end; ++i)
    for (std::int64_t j = kx.begin; j < kx.end; ++j) {
      const std::int64_t pixel = ((y0 + i * p.dilation[0]) * p.w + x0 + j * p.dilation[1]) * p.c;
      const auto tap = static_cast<std::int32_t>(i * p.kernel[1] + j);
      if (kOverlap) {
        A* to = static_cast<A*>(dx) + pixel;
        for (std::int64_t c = 0; c < count; ++c) to[c] += at[c] == tap ? g[c] : A(0);
      } else {
        T* to = static_cast<T*>(dx) + pixel;
        for (std::int64_t c = 0; c < count; ++c) store(to + c, at[c] == tap ? g[c] : A(0));
      }
    }
}

struct Backward {
  const void* dy;
  const std::uint8_t* taps;
  void* dx;
  const PoolWindows& p;
  const PooledStrides& strides;
  bool overlap;
  std::int64_t begin, end;

  template <class T, class A, bool kOverlap>
  void loop() const {
    const std::int64_t image = p.h * p.w * p.c;
    const std::int64_t size = kOverlap ? sizeof(A) : sizeof(T);
    // Windows that tile the image write each element of dx; otherwise the rest is 0.
    const bool tiles = !kOverlap && p.padding[0] == 0 && p.padding[1] == 0 && p.dilation[0] == 1 &&
                       p.dilation[1] == 1 && p.stride[0] == p.kernel[0] &&
                       p.stride[1] == p.kernel[1] && p.oh * p.kernel[0] == p.h &&
                       p.ow * p.kernel[1] == p.w;
    for (std::int64_t n = begin; n < end; ++n) {
      char* to = static_cast<char*>(dx) + n * image * size;
      if (!tiles) __builtin_memset(to, 0, image * size);
      for (std::int64_t oy = 0; oy < p.oh; ++oy) {
        const Range ky = inside(oy, p.h, p.kernel[0], p.stride[0], p.padding[0], p.dilation[0]);
        for (std::int64_t ox = 0; ox < p.ow; ++ox) {
          const Range kx = inside(ox, p.w, p.kernel[1], p.stride[1], p.padding[1], p.dilation[1]);
          const T* g = static_cast<const T*>(dy) + n * strides.n + oy * strides.y + ox * strides.x;
          const std::uint8_t* at = taps + ((n * p.oh + oy) * p.ow + ox) * p.c;
          const std::int64_t y0 = oy * p.stride[0] - p.padding[0];
          const std::int64_t x0 = ox * p.stride[1] - p.padding[1];
          std::int64_t c = 0;
          for (; c + kBlock <= p.c; c += kBlock)
            unpool_block<T, A, kOverlap, true>(g + c * strides.c, strides.c, at + c, to + c * size,
                                               p, y0, x0, ky, kx, kBlock);
          if (c < p.c)
            unpool_block<T, A, kOverlap, false>(g + c * strides.c, strides.c, at + c, to + c * size,
                                                p, y0, x0, ky, kx, p.c - c);
        }
      }
    }
  }
  template <class T, class A>
  void run() const {
    overlap ? loop<T, A, true>() : loop<T, A, false>();
  }
};

void forward(DType dtype, const void* x, void* y, std::uint8_t* taps, const PoolWindows& p,
             const PooledStrides& strides, std::int64_t begin, std::int64_t end) {
  with_element(dtype, Forward{x, y, taps, p, strides, begin, end});
}
void backward(DType dtype, const void* dy, const std::uint8_t* taps, void* dx, const PoolWindows& p,
              const PooledStrides& strides, bool overlap, std::int64_t begin, std::int64_t end) {
  with_element(dtype, Backward{dy, taps, dx, p, strides, overlap, begin, end});
}

}  // namespace

extern const MaxPoolKernels kMaxPoolKernels;
constexpr MaxPoolKernels kMaxPoolKernels{&forward, &backward};

}  // namespace lockstep::kernels::LOCKSTEP_ISA
