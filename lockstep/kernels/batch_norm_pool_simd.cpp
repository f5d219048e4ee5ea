#include "lockstep/kernels/batch_norm_pool_simd.h"

#include "lockstep/kernels/element_simd.h"

namespace lockstep::kernels::LOCKSTEP_ISA {
namespace {

constexpr std::int64_t kBlock = 64;  // channels kept in registers

// Per channel values from the first of a block on.
template <class A>
struct Norm {
  const A *mean, *scale, *shift;

  Norm(const BatchNormChannels& c, std::int64_t first)
      : mean(static_cast<const A*>(c.mean) + first),
        scale(static_cast<const A*>(c.scale) + first),
        shift(static_cast<const A*>(c.shift) + first) {}
};

// Calls f(first, count) for blocks of channels; the count of whole blocks is known to the compiler.
template <class F>
LOCKSTEP_ELEMENT_FN void for_each_block(std::int64_t c, const F& f) {
  std::int64_t first = 0;
  for (; first + kBlock <= c; first += kBlock) f(first, kBlock);
  if (first < c) f(first, c - first);
}

template <class T, class A>
LOCKSTEP_ELEMENT_FN void read_gradient(const T* dy, std::int64_t dy_c, std::int64_t count, A* g) {
  if (dy_c == 1)
    for (std::int64_t j = 0; j < count; ++j) g[j] = load(dy[j]);
  else
    for (std::int64_t j = 0; j < count; ++j) g[j] = load(dy[j * dy_c]);
}

// Pointers to the operands of one window row.
template <class T>
struct WindowRow {
  const T* x;  // upper left pixel of the first window
  std::int64_t n, oy, row;

  WindowRow(const void* x_all, const PoolWindows& p, std::int64_t row_index)
      : n(row_index / p.oh), oy(row_index % p.oh), row(row_index) {
    x = static_cast<const T*>(x_all) + offset(p);
  }
  std::int64_t offset(const PoolWindows& p) const {
    return (n * p.h + oy * p.kernel[0]) * p.w * p.c;
  }
  std::int64_t pooled(const PooledStrides& s) const { return n * s.n + oy * s.y; }
  std::int64_t taps(const PoolWindows& p) const { return row * p.ow * p.c; }
};

struct Forward {
  const void* x;
  void* y;
  std::uint8_t* taps;
  const PoolWindows& p;
  const PooledStrides& strides;
  const BatchNormChannels& channels;
  std::int64_t begin, end;

  template <class T, class A>
  void run() const {
    for (std::int64_t i = begin; i < end; ++i) {
      const WindowRow<T> row(x, p, i);
      for (std::int64_t ox = 0; ox < p.ow; ++ox)
        for_each_block(
            p.c, [&](std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
              window<T, A>(
                  row.x + ox * p.kernel[1] * p.c + first,
                  static_cast<T*>(y) + row.pooled(strides) + ox * strides.x + first * strides.c,
                  taps + row.taps(p) + ox * p.c + first, Norm<A>(channels, first), count);
            });
    }
  }
  template <class T, class A>
  __attribute__((always_inline)) void window(const T* from, T* to, std::uint8_t* to_taps,
                                             const Norm<A>& norm, std::int64_t count) const {
    A best[kBlock], mean[kBlock], scale[kBlock], shift[kBlock];
    std::int32_t at[kBlock];
    for (std::int64_t j = 0; j < count; ++j) {
      mean[j] = norm.mean[j];
      scale[j] = norm.scale[j];
      shift[j] = norm.shift[j];
      const A z = (load(from[j]) - mean[j]) * scale[j] + shift[j];
      best[j] = A(0) > z ? A(0) : z;
      at[j] = 0;
    }
    for (std::int64_t r = 0; r < p.kernel[0]; ++r)
      for (std::int64_t s = 0; s < p.kernel[1]; ++s) {
        const auto tap = static_cast<std::int32_t>(r * p.kernel[1] + s);
        if (tap == 0) continue;
        const T* pixel = from + (r * p.w + s) * p.c;
        for (std::int64_t j = 0; j < count; ++j) {
          const A z = (load(pixel[j]) - mean[j]) * scale[j] + shift[j];
          const A v = A(0) > z ? A(0) : z;
          const bool takes = !(v <= best[j]) & (best[j] == best[j]);  // a NaN stays
          best[j] = takes ? v : best[j];
          at[j] = takes ? tap : at[j];
        }
      }
    if (strides.c == 1)
      for (std::int64_t j = 0; j < count; ++j) store(to + j, best[j]);
    else
      for (std::int64_t j = 0; j < count; ++j) store(to + j * strides.c, best[j]);
    for (std::int64_t j = 0; j < count; ++j) to_taps[j] = static_cast<std::uint8_t>(at[j]);
  }
};

struct BackwardSums {
  const void *x, *dy;
  const std::uint8_t* taps;
  const PoolWindows& p;
  const PooledStrides& strides;
  const BatchNormChannels& channels;
  void* scratch;
  double *sum_dy, *sum_dy_xmu;
  std::int64_t begin, end;

  template <class T, class A>
  void run() const {
    A* sums = static_cast<A*>(scratch);
    A* products = sums + p.c;
    for (std::int64_t j = 0; j < p.c; ++j) sum_dy[j] = sum_dy_xmu[j] = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const WindowRow<T> row(x, p, i);
      for (std::int64_t j = 0; j < 2 * p.c; ++j) sums[j] = 0;
      for (std::int64_t ox = 0; ox < p.ow; ++ox)
        for_each_block(
            p.c, [&](std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
              window<T, A>(row.x + ox * p.kernel[1] * p.c + first,
                           static_cast<const T*>(dy) + row.pooled(strides) + ox * strides.x +
                               first * strides.c,
                           taps + row.taps(p) + ox * p.c + first, Norm<A>(channels, first),
                           sums + first, products + first, count);
            });
      for (std::int64_t j = 0; j < p.c; ++j) {
        sum_dy[j] += sums[j];
        sum_dy_xmu[j] += products[j];
      }
    }
  }
  template <class T, class A>
  __attribute__((always_inline)) void window(const T* from, const T* gradient,
                                             const std::uint8_t* from_taps, const Norm<A>& norm,
                                             A* sums, A* products, std::int64_t count) const {
    A g[kBlock], chosen[kBlock] = {};
    std::int32_t at[kBlock];
    read_gradient<T, A>(gradient, strides.c, count, g);
    for (std::int64_t j = 0; j < count; ++j) at[j] = from_taps[j];
    for (std::int64_t r = 0; r < p.kernel[0]; ++r)
      for (std::int64_t s = 0; s < p.kernel[1]; ++s) {
        const T* pixel = from + (r * p.w + s) * p.c;
        const auto tap = static_cast<std::int32_t>(r * p.kernel[1] + s);
        for (std::int64_t j = 0; j < count; ++j) {
          const A v = load(pixel[j]);
          chosen[j] = at[j] == tap ? v : chosen[j];
        }
      }
    for (std::int64_t j = 0; j < count; ++j) {
      const A d = chosen[j] - norm.mean[j];
      const A passed = d * norm.scale[j] + norm.shift[j] <= A(0) ? A(0) : g[j];
      sums[j] += passed;
      products[j] += passed * d;
    }
  }
};

struct BackwardApply {
  const void *x, *dy;
  const std::uint8_t* taps;
  void* dx;
  const PoolWindows& p;
  const PooledStrides& strides;
  const BatchNormChannels& channels;
  const void* const* k;
  std::int64_t begin, end;

  template <class T, class A>
  void run() const {
    for (std::int64_t i = begin; i < end; ++i) {
      const WindowRow<T> row(x, p, i);
      T* to = static_cast<T*>(dx) + row.offset(p);
      for (std::int64_t ox = 0; ox < p.ow; ++ox) {
        const std::int64_t at = ox * p.kernel[1] * p.c;
        for_each_block(
            p.c, [&](std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
              window<T, A>(row.x + at + first,
                           static_cast<const T*>(dy) + row.pooled(strides) + ox * strides.x +
                               first * strides.c,
                           taps + row.taps(p) + ox * p.c + first, to + at + first, first, count);
            });
      }
      const std::int64_t covered = p.ow * p.kernel[1];
      for (std::int64_t r = 0; r < p.kernel[0]; ++r) rest<T, A>(row.x, to, r, covered);
      if (row.oy + 1 == p.oh)
        for (std::int64_t r = p.kernel[0]; r < p.h - row.oy * p.kernel[0]; ++r)
          rest<T, A>(row.x, to, r, 0);
    }
  }
  // Pixels of image row r from column `first` on, which no window covers.
  template <class T, class A>
  void rest(const T* from, T* to, std::int64_t r, std::int64_t first) const {
    const A* mean = static_cast<const A*>(channels.mean);
    for (std::int64_t s = first; s < p.w; ++s)
      for (std::int64_t j = 0; j < p.c; ++j) {
        const std::int64_t i = (r * p.w + s) * p.c + j;
        const A d = load(from[i]) - mean[j];
        store(to + i, d * static_cast<const A*>(k[1])[j] + static_cast<const A*>(k[2])[j]);
      }
  }
  template <class T, class A>
  __attribute__((always_inline)) void window(const T* from, const T* gradient,
                                             const std::uint8_t* from_taps, T* to,
                                             std::int64_t first, std::int64_t count) const {
    const Norm<A> norm(channels, first);
    const A* __restrict k0 = static_cast<const A*>(k[0]) + first;
    const A* __restrict k1 = static_cast<const A*>(k[1]) + first;
    const A* __restrict k2 = static_cast<const A*>(k[2]) + first;
    A g[kBlock];
    std::int32_t at[kBlock];
    read_gradient<T, A>(gradient, strides.c, count, g);
    for (std::int64_t j = 0; j < count; ++j) at[j] = from_taps[j];
    for (std::int64_t r = 0; r < p.kernel[0]; ++r)
      for (std::int64_t s = 0; s < p.kernel[1]; ++s) {
        const T* pixel = from + (r * p.w + s) * p.c;
        T* out = to + (r * p.w + s) * p.c;
        const auto tap = static_cast<std::int32_t>(r * p.kernel[1] + s);
#pragma GCC ivdep
        for (std::int64_t j = 0; j < count; ++j) {
          const A d = load(pixel[j]) - norm.mean[j];
          A passed = d * norm.scale[j] + norm.shift[j] <= A(0) ? A(0) : g[j];
          passed = at[j] == tap ? passed : A(0);
          store(out + j, passed * k0[j] + (d * k1[j] + k2[j]));
        }
      }
  }
};

void forward(DType dtype, const void* x, void* y, std::uint8_t* taps, const PoolWindows& p,
             const PooledStrides& strides, const BatchNormChannels& channels, std::int64_t begin,
             std::int64_t end) {
  with_element(dtype, Forward{x, y, taps, p, strides, channels, begin, end});
}
void backward_sums(DType dtype, const void* x, const void* dy, const std::uint8_t* taps,
                   const PoolWindows& p, const PooledStrides& strides,
                   const BatchNormChannels& channels, void* scratch, double* sum_dy,
                   double* sum_dy_xmu, std::int64_t begin, std::int64_t end) {
  with_element(dtype, BackwardSums{x, dy, taps, p, strides, channels, scratch, sum_dy, sum_dy_xmu,
                                   begin, end});
}
void backward_apply(DType dtype, const void* x, const void* dy, const std::uint8_t* taps, void* dx,
                    const PoolWindows& p, const PooledStrides& strides,
                    const BatchNormChannels& channels, const void* const k[3], std::int64_t begin,
                    std::int64_t end) {
  with_element(dtype, BackwardApply{x, dy, taps, dx, p, strides, channels, k, begin, end});
}

}  // namespace

extern const BatchNormPoolKernels kBatchNormPoolKernels;
constexpr BatchNormPoolKernels kBatchNormPoolKernels{&forward, &backward_sums, &backward_apply};

}  // namespace lockstep::kernels::LOCKSTEP_ISA
