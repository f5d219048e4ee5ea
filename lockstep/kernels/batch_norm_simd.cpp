#include "lockstep/kernels/batch_norm_simd.h"

#include "lockstep/kernels/element_simd.h"

namespace lockstep::kernels::LOCKSTEP_ISA {
namespace {

// Rows that are summed in the computing type before the sum goes into f64: they fit the L1 cache,
// so that the second look at them costs nothing.
template <class A>
LOCKSTEP_ELEMENT_FN std::int64_t chunk_rows(std::int64_t c) {
  const std::int64_t fit = 32768 / (larger(c, 1) * static_cast<std::int64_t>(sizeof(A)));
  return smaller(larger(fit / 4 * 4, 8), 128);
}

// max(0, z) that keeps NaN.
template <class A>
LOCKSTEP_ELEMENT_FN A rectify(A z) {
  return A(0) > z ? A(0) : z;
}

template <class T, class A>
void chunk_sum(const T* __restrict x, std::int64_t rows, std::int64_t c, A* __restrict sum) {
  for (std::int64_t j = 0; j < c; ++j) sum[j] = 0;
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * c)
    for (std::int64_t j = 0; j < c; ++j)
      sum[j] += (load(x[j]) + load(x[c + j])) + (load(x[2 * c + j]) + load(x[3 * c + j]));
  for (; i < rows; ++i, x += c)
    for (std::int64_t j = 0; j < c; ++j) sum[j] += load(x[j]);
}

// Sums of d and d² with d = x - center.
template <class T, class A>
void chunk_deviations(const T* __restrict x, std::int64_t rows, std::int64_t c,
                      const A* __restrict center, A* __restrict sum, A* __restrict squares) {
  for (std::int64_t j = 0; j < c; ++j) sum[j] = squares[j] = 0;
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * c)
    for (std::int64_t j = 0; j < c; ++j) {
      const A m = center[j];
      const A d0 = load(x[j]) - m, d1 = load(x[c + j]) - m;
      const A d2 = load(x[2 * c + j]) - m, d3 = load(x[3 * c + j]) - m;
      sum[j] += (d0 + d1) + (d2 + d3);
      squares[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
    }
  for (; i < rows; ++i, x += c)
    for (std::int64_t j = 0; j < c; ++j) {
      const A d = load(x[j]) - center[j];
      sum[j] += d;
      squares[j] += d * d;
    }
}

// sum += g and product += g (x - mean) over the rows, g = 0 where ReLU cut off.
template <class T, class A, bool kRelu>
__attribute__((noinline)) void chunk_gradients(const T* __restrict from,
                                               const T* __restrict gradient, std::int64_t rows,
                                               std::int64_t c, const A* __restrict mean,
                                               const A* __restrict scale, const A* __restrict shift,
                                               A* __restrict sum, A* __restrict product) {
  const auto masked = [](A g, A z) __attribute__((always_inline)) {
    return kRelu && z <= A(0) ? A(0) : g;
  };
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4, from += 4 * c, gradient += 4 * c) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < c; ++j) {
      const A m = mean[j], k = scale[j], b = shift[j];
      const A d0 = load(from[j]) - m, d1 = load(from[c + j]) - m;
      const A d2 = load(from[2 * c + j]) - m, d3 = load(from[3 * c + j]) - m;
      const A g0 = masked(load(gradient[j]), d0 * k + b);
      const A g1 = masked(load(gradient[c + j]), d1 * k + b);
      const A g2 = masked(load(gradient[2 * c + j]), d2 * k + b);
      const A g3 = masked(load(gradient[3 * c + j]), d3 * k + b);
      sum[j] += (g0 + g1) + (g2 + g3);
      product[j] += (g0 * d0 + g1 * d1) + (g2 * d2 + g3 * d3);
    }
  }
  for (; r < rows; ++r, from += c, gradient += c) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < c; ++j) {
      const A d = load(from[j]) - mean[j];
      const A g = masked(load(gradient[j]), d * scale[j] + shift[j]);
      sum[j] += g;
      product[j] += g * d;
    }
  }
}

struct Moments {
  const void* x;
  std::int64_t rows, c;
  void* scratch;
  double *mean, *m2;

  template <class T, class A>
  void run() const {
    A* center = static_cast<A*>(scratch);
    A* sum = center + c;
    A* squares = sum + c;
    for (std::int64_t j = 0; j < c; ++j) mean[j] = m2[j] = 0;
    const std::int64_t step = chunk_rows<A>(c);
    for (std::int64_t i = 0; i < rows; i += step) {
      const T* chunk = static_cast<const T*>(x) + i * c;
      const std::int64_t n = smaller(step, rows - i);
      chunk_sum<T, A>(chunk, n, c, center);
      const A inverse = A(1) / static_cast<A>(n);
      for (std::int64_t j = 0; j < c; ++j) center[j] *= inverse;
      chunk_deviations<T, A>(chunk, n, c, center, sum, squares);
      // Chan, Golub & LeVeque's combination of two sets' moments.
      const double of_chunk = static_cast<double>(n) / static_cast<double>(i + n);
      const double cross = static_cast<double>(i) * of_chunk, inverse_n = 1.0 / n;
      for (std::int64_t j = 0; j < c; ++j) {
        const double s = sum[j];
        const double delta = center[j] + s * inverse_n - mean[j];
        mean[j] += delta * of_chunk;
        m2[j] += (squares[j] - s * s * inverse_n) + delta * delta * cross;
      }
    }
  }
};

struct Apply {
  const void* x;
  void* y;
  std::int64_t rows, c;
  const BatchNormChannels& channels;

  template <class T, class A, bool kRelu>
  void loop() const {
    const A* __restrict mean = static_cast<const A*>(channels.mean);
    const A* __restrict scale = static_cast<const A*>(channels.scale);
    const A* __restrict shift = static_cast<const A*>(channels.shift);
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    for (std::int64_t i = 0; i < rows; ++i, from += c, to += c) {
#pragma GCC ivdep
      for (std::int64_t j = 0; j < c; ++j) {
        const A z = (load(from[j]) - mean[j]) * scale[j] + shift[j];
        store(to + j, kRelu ? rectify(z) : z);
      }
    }
  }
  template <class T, class A>
  void run() const {
    channels.relu ? loop<T, A, true>() : loop<T, A, false>();
  }
};

struct BackwardSums {
  const void *x, *dy;
  std::int64_t rows, c;
  const BatchNormChannels& channels;
  void* scratch;
  double *sum_dy, *sum_dy_xmu;

  template <class T, class A, bool kRelu>
  void loop() const {
    const A* __restrict mean = static_cast<const A*>(channels.mean);
    const A* __restrict scale = static_cast<const A*>(channels.scale);
    const A* __restrict shift = static_cast<const A*>(channels.shift);
    A* __restrict s = static_cast<A*>(scratch);
    A* __restrict p = s + c;
    for (std::int64_t j = 0; j < c; ++j) sum_dy[j] = sum_dy_xmu[j] = 0;
    const std::int64_t step = chunk_rows<A>(c);
    for (std::int64_t i = 0; i < rows; i += step) {
      const T* __restrict from = static_cast<const T*>(x) + i * c;
      const T* __restrict gradient = static_cast<const T*>(dy) + i * c;
      const std::int64_t n = smaller(step, rows - i);
      for (std::int64_t j = 0; j < c; ++j) s[j] = p[j] = 0;
      chunk_gradients<T, A, kRelu>(from, gradient, n, c, mean, scale, shift, s, p);
      for (std::int64_t j = 0; j < c; ++j) {
        sum_dy[j] += s[j];
        sum_dy_xmu[j] += p[j];
      }
    }
  }
  template <class T, class A>
  void run() const {
    channels.relu ? loop<T, A, true>() : loop<T, A, false>();
  }
};

struct BackwardApply {
  const void *x, *dy;
  void* dx;
  std::int64_t rows, c;
  const BatchNormChannels& channels;
  const void* const* k;

  template <class T, class A, bool kRelu>
  void loop() const {
    const A* __restrict mean = static_cast<const A*>(channels.mean);
    const A* __restrict scale = static_cast<const A*>(channels.scale);
    const A* __restrict shift = static_cast<const A*>(channels.shift);
    const A* __restrict k0 = static_cast<const A*>(k[0]);
    const A* __restrict k1 = static_cast<const A*>(k[1]);
    const A* __restrict k2 = static_cast<const A*>(k[2]);
    const T* from = static_cast<const T*>(x);
    const T* gradient = static_cast<const T*>(dy);
    T* to = static_cast<T*>(dx);
    for (std::int64_t i = 0; i < rows; ++i, from += c, gradient += c, to += c) {
#pragma GCC ivdep
      for (std::int64_t j = 0; j < c; ++j) {
        const A d = load(from[j]) - mean[j];
        A g = load(gradient[j]);
        if (kRelu) g = d * scale[j] + shift[j] <= A(0) ? A(0) : g;
        store(to + j, g * k0[j] + (d * k1[j] + k2[j]));
      }
    }
  }
  template <class T, class A>
  void run() const {
    channels.relu ? loop<T, A, true>() : loop<T, A, false>();
  }
};

void moments(DType dtype, const void* x, std::int64_t rows, std::int64_t c, void* scratch,
             double* mean, double* m2) {
  with_element(dtype, Moments{x, rows, c, scratch, mean, m2});
}
void apply(DType dtype, const void* x, void* y, std::int64_t rows, std::int64_t c,
           const BatchNormChannels& channels) {
  with_element(dtype, Apply{x, y, rows, c, channels});
}
void backward_sums(DType dtype, const void* x, const void* dy, std::int64_t rows, std::int64_t c,
                   const BatchNormChannels& channels, void* scratch, double* sum_dy,
                   double* sum_dy_xmu) {
  with_element(dtype, BackwardSums{x, dy, rows, c, channels, scratch, sum_dy, sum_dy_xmu});
}
void backward_apply(DType dtype, const void* x, const void* dy, void* dx, std::int64_t rows,
                    std::int64_t c, const BatchNormChannels& channels, const void* const k[3]) {
  with_element(dtype, BackwardApply{x, dy, dx, rows, c, channels, k});
}

}  // namespace

extern const BatchNormKernels kBatchNormKernels;
constexpr BatchNormKernels kBatchNormKernels{&moments, &apply, &backward_sums, &backward_apply};

}  // namespace lockstep::kernels::LOCKSTEP_ISA
