// How the threads of a group share a row: vectors side by side, each thread some of them. For ops
// that keep a row on the chip between two passes over it. Internal: device code.
#pragma once

#include <utility>

#include "lockstep/kernels/block_reduce.cuh"
#include "lockstep/kernels/device_element.cuh"

namespace lockstep::kernels::cuda {

// Over groups of `lanes` neighbouring lanes, a power of two that the launch chose. All 32 lanes of
// the warp must come.
template <class T, class Op>
__device__ __forceinline__ T group_reduce(T value, unsigned lanes, Op op) {
  for (unsigned distance = lanes / 2; distance > 0; distance /= 2)
    value = op(value, __shfl_xor_sync(0xffffffffu, value, static_cast<int>(distance)));
  return value;
}

// A lane's part of a row in registers: the vectors `lane`, `lane` + `lanes`, … of kN elements.
template <class T, int kN, int kVectors>
struct RowPart {
  using C = Compute<T>;
  static constexpr int kCount = kN * kVectors;
  C value[kCount];

  // Elements beyond the row are `beyond`.
  __device__ __forceinline__ void load(const T* row, unsigned length, unsigned lane, unsigned lanes,
                                       C beyond) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const unsigned at = (lane + lanes * static_cast<unsigned>(v)) * kN;
      AlignedVector<T, kN> in;
      const bool inside = at < length;
      if (inside) in = load_vector<kN>(row + at);
#pragma unroll
      for (int i = 0; i < kN; ++i)
        value[v * kN + i] = inside ? convert_element<C>(in.value[i]) : beyond;
    }
  }

  __device__ __forceinline__ void store(T* row, unsigned length, unsigned lane,
                                        unsigned lanes) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const unsigned at = (lane + lanes * static_cast<unsigned>(v)) * kN;
      AlignedVector<T, kN> out;
#pragma unroll
      for (int i = 0; i < kN; ++i) out.value[i] = convert_element<T>(value[v * kN + i]);
      if (at < length) store_vector(row + at, out);
    }
  }
};

// Calls f(element, index) for a block's thread's elements of a row, a vector at a time.
template <int kN, class T, class F>
__device__ __forceinline__ void for_row(const T* row, std::uint64_t length, F&& f) {
  for (std::uint64_t at = std::uint64_t{threadIdx.x} * kN; at < length; at += blockDim.x * kN) {
    const AlignedVector<T, kN> in = load_vector<kN>(row + at);
#pragma unroll
    for (int i = 0; i < kN; ++i) f(convert_element<Compute<T>>(in.value[i]), at + i);
  }
}

// How a launch shares rows among warps: `lanes` to a row, `vectors` of them to a lane.
struct RowShare {
  static constexpr unsigned kThreads = 128;
  static constexpr std::size_t kMostBytes = 128;  // of a lane
  unsigned lanes = 32;
  int vectors = 1;
  bool fits = false;

  // Of elements that are kept in `element_bytes`.
  RowShare(std::int64_t length, int kN, std::size_t element_bytes) {
    const std::int64_t parts = (length + kN - 1) / kN;
    while (lanes > 1 && static_cast<std::int64_t>(lanes / 2) >= parts) lanes /= 2;
    while (static_cast<std::int64_t>(lanes) * vectors < parts && vectors <= 32) vectors *= 2;
    fits = static_cast<std::size_t>(vectors * kN) * element_bytes <= kMostBytes;
  }

  unsigned grid(std::int64_t rows) const {
    return lockstep::cuda::grid_for(rows, kThreads / lanes);
  }
};

// Calls f.template operator()<kVectors>() for the number of vectors of a share that fits, with kN
// elements each, kept in C.
template <int kN, class C, int kVectors = 1, class F>
void visit_row_share(const RowShare& share, F&& f) {
  if (share.vectors == kVectors) return f.template operator()<kVectors>();
  if constexpr (2 * kVectors * kN * sizeof(C) <= RowShare::kMostBytes)
    visit_row_share<kN, C, 2 * kVectors>(share, std::forward<F>(f));
}

}  // namespace lockstep::kernels::cuda
