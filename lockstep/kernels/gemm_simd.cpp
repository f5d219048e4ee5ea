// Goto's scheme: panels of B stay in L2/L3, blocks of A in L2, a register tile of C in between.
#include "lockstep/kernels/gemm_simd.h"

#include "lockstep/kernels/element_simd.h"

namespace lockstep::kernels::LOCKSTEP_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRows = 14;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRows = 6;
#else
constexpr int kVectorBytes = 16, kRows = 4;
#endif
constexpr std::int64_t kBlockK = 256, kBlockM = kRows * 8, kBlockBytesN = 2048;

template <class T>
struct Tile {
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(kVectorBytes)));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
  static constexpr int kCols = 2 * kLanes;
  static constexpr std::int64_t kBlockN = kBlockBytesN / sizeof(T);
};

// acc = A panel [k][kRows] times B panel [k][kCols].
template <class T>
void multiply_tile(std::int64_t k, const T* a, const T* b, T* out, std::int64_t out_row,
                   bool accumulate) {
  using V = typename Tile<T>::Vector;
  using U = typename Tile<T>::Unaligned;
  constexpr int kLanes = Tile<T>::kLanes;
  V acc[kRows][2] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    const V b0 = *reinterpret_cast<const V*>(b);
    const V b1 = *reinterpret_cast<const V*>(b + kLanes);
    __builtin_prefetch(b + 16 * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      acc[i][0] += a[i] * b0;
      acc[i][1] += a[i] * b1;
    }
    a += kRows;
    b += 2 * kLanes;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    U* row = reinterpret_cast<U*>(out + i * out_row);
    if (accumulate) {
      row[0] += acc[i][0];
      row[1] += acc[i][1];
    } else {
      row[0] = acc[i][0];
      row[1] = acc[i][1];
    }
  }
}

// Rows i0.. of A as [k][kRows], missing rows 0.
template <class T>
void pack_a(const GemmBlock<T>& g, std::int64_t i0, std::int64_t rows, std::int64_t p0,
            std::int64_t k, T* to) {
  const T* from = g.a + i0 * g.a_row + p0 * g.a_col;
  for (std::int64_t p = 0; p < k; ++p) {
    const T* column = from + p * g.a_col;
    for (int i = 0; i < kRows; ++i) to[i] = i < rows ? column[i * g.a_row] : T(0);
    to += kRows;
  }
}

template <class T>
void pack_b(const GemmBlock<T>& g, std::int64_t j0, std::int64_t cols, std::int64_t p0,
            std::int64_t k, T* to) {
  constexpr int kCols = Tile<T>::kCols;
  const T* from = g.b + j0 * g.b_col + p0 * g.b_row;
  for (std::int64_t p = 0; p < k; ++p) {
    const T* row = from + p * g.b_row;
    if (g.b_col == 1 && cols >= kCols)
      for (int j = 0; j < kCols; ++j) to[j] = row[j];
    else
      for (int j = 0; j < kCols; ++j) to[j] = j < cols ? row[j * g.b_col] : T(0);
    to += kCols;
  }
}

template <class T>
void add_tile(const GemmBlock<T>& g, std::int64_t i, std::int64_t j, std::int64_t k, const T* a,
              const T* b, bool accumulate) {
  constexpr int kCols = Tile<T>::kCols;
  const std::int64_t rows = smaller(kRows, g.m - i), cols = smaller(kCols, g.n - j);
  T* c = g.c + i * g.c_row + j;
  if (rows == kRows && cols == kCols) return multiply_tile(k, a, b, c, g.c_row, accumulate);
  alignas(64) T edge[kRows * kCols];
  multiply_tile(k, a, b, edge, kCols, false);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t s = 0; s < cols; ++s) {
      T& to = c[r * g.c_row + s];
      to = accumulate ? to + edge[r * kCols + s] : edge[r * kCols + s];
    }
}

template <class T>
void multiply(const GemmBlock<T>& g, void* workspace) {
  constexpr int kCols = Tile<T>::kCols;
  constexpr std::int64_t kBlockN = Tile<T>::kBlockN;
  T* packed_b = static_cast<T*>(workspace);
  T* packed_a = packed_b + kBlockK * kBlockN;
  for (std::int64_t j0 = 0; j0 < g.n; j0 += kBlockN) {
    const std::int64_t n = smaller(kBlockN, g.n - j0);
    for (std::int64_t p0 = 0; p0 < g.k; p0 += kBlockK) {
      const std::int64_t k = smaller(kBlockK, g.k - p0);
      for (std::int64_t j = 0; j < n; j += kCols) pack_b(g, j0 + j, n - j, p0, k, packed_b + j * k);
      const bool accumulate = g.accumulate || p0 > 0;
      for (std::int64_t i0 = 0; i0 < g.m; i0 += kBlockM) {
        const std::int64_t m = smaller(kBlockM, g.m - i0);
        for (std::int64_t i = 0; i < m; i += kRows)
          pack_a(g, i0 + i, m - i, p0, k, packed_a + i * k);
        for (std::int64_t j = 0; j < n; j += kCols)
          for (std::int64_t i = 0; i < m; i += kRows)
            add_tile(g, i0 + i, j0 + j, k, packed_a + i * k, packed_b + j * k, accumulate);
      }
    }
  }
}

}  // namespace

extern const GemmKernels kGemmKernels;
constexpr GemmKernels kGemmKernels{
    kRows, Tile<float>::kCols,
    kBlockK*(kBlockBytesN + kBlockM * static_cast<std::int64_t>(sizeof(double))), &multiply<float>,
    &multiply<double>};

}  // namespace lockstep::kernels::LOCKSTEP_ISA
