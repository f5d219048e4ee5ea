// A product of matrices in tiles, in f32 (f64) without tensor cores: what gemm and the
// implicit-GEMM convolutions share. Operands come through loaders, so that none has to lie in
// memory as a matrix. Internal: device code.
//
// Note [tiles]: a block computes kTile x kTile elements of C, a thread 4x4 or 8x8 of them in
// registers. Both operands pass through shared memory as [k][outer], 16 steps of k at a time, twice
// buffered: the next tile is loaded into registers while this one is multiplied. Rows are padded by
// 4 elements, and for k of 8 to 15 the columns are swapped by 8, so that neither the stores of
// loaders that go along k nor the reads meet in a bank.
#pragma once

#include "lockstep/core/kernel_launch.cuh"
#include "lockstep/kernels/device_element.cuh"

namespace lockstep::kernels::cuda {

// Four elements side by side.
template <class T>
using Quad = AlignedVector<T, 4>;

inline constexpr int kTileSteps = 16;  // of k
inline constexpr int kTileThreads = 256;

// A loader of `outer` x k elements of T has
//   static constexpr bool kAlongK;        whether a quad lies along k, else along outer
//   void select(unsigned batch);          goes to the matrix of a batch
//   Slot slot(std::uint64_t outer) const  what is the same for all k
//   Quad<T> load(const Slot&, std::uint64_t k) const    zeros beyond the end
// and an output
//   void select(unsigned batch, unsigned split);
//   void store(std::uint64_t row, std::uint64_t column, const C* quad) const
// which leaves out what is beyond the end.

struct TileGrid {
  std::uint64_t column_tiles = 1;
  std::uint64_t k = 0;          // of the whole product
  std::uint64_t per_split = 0;  // of k: a multiple of kTileSteps
};

// One operand's part of a tile, on its way from memory to shared memory.
template <class C, class T, class Loader, int kTile>
struct TilePart {
  static constexpr int kRow = kTile + 4;
  static constexpr int kQuads = kTile * kTileSteps / 4 / kTileThreads;

  typename Loader::Slot slots[kQuads];
  Quad<T> loaded[kQuads];

  // Of the thread's quad q: its place in the tile.
  static __device__ __forceinline__ unsigned outer_of(int q) {
    const unsigned i = threadIdx.x + static_cast<unsigned>(q) * kTileThreads;
    return Loader::kAlongK ? i / (kTileSteps / 4) : i % (kTile / 4) * 4;
  }
  static __device__ __forceinline__ unsigned k_of(int q) {
    const unsigned i = threadIdx.x + static_cast<unsigned>(q) * kTileThreads;
    return Loader::kAlongK ? i % (kTileSteps / 4) * 4 : i / (kTile / 4);
  }

  __device__ __forceinline__ void begin(const Loader& loader, std::uint64_t first_outer) {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) slots[q] = loader.slot(first_outer + outer_of(q));
  }

  __device__ __forceinline__ void load(const Loader& loader, std::uint64_t k) {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) loaded[q] = loader.load(slots[q], k + k_of(q));
  }

  __device__ __forceinline__ void store(C (*tile)[kRow]) const {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      const unsigned k = k_of(q), column = outer_of(q) ^ swap_of(k);
      if constexpr (Loader::kAlongK) {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i)
          tile[k + i][column] = convert_element<C>(loaded[q].value[i]);
      } else {
        Quad<C> quad;
#pragma unroll
        for (int i = 0; i < 4; ++i) quad.value[i] = convert_element<C>(loaded[q].value[i]);
        store_vector(&tile[k][column], quad);
      }
    }
  }

  static __device__ __forceinline__ unsigned swap_of(unsigned k) { return k / 8 % 2 * 8; }
};

template <class T, int kTile, class A, class B, class Out>
__global__ void __launch_bounds__(kTileThreads, 1)
    gemm_tile_kernel(A a, B b, Out out, TileGrid grid) {
  using C = Compute<T>;
  using PartA = TilePart<C, T, A, kTile>;
  using PartB = TilePart<C, T, B, kTile>;
  constexpr int kPieces = kTile / 64;  // of 4 rows and 4 columns of a thread
  alignas(16) __shared__ C tile_a[2][kTileSteps][PartA::kRow];
  alignas(16) __shared__ C tile_b[2][kTileSteps][PartB::kRow];
  a.select(blockIdx.z);
  b.select(blockIdx.z);
  out.select(blockIdx.z, blockIdx.y);
  const std::uint64_t first_row = blockIdx.x / grid.column_tiles * kTile;
  const std::uint64_t first_column = blockIdx.x % grid.column_tiles * kTile;
  const unsigned x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
  const std::uint64_t first_k = blockIdx.y * grid.per_split;
  const std::uint64_t end_k = min(grid.k, first_k + grid.per_split);

  PartA part_a;
  PartB part_b;
  part_a.begin(a, first_row);
  part_b.begin(b, first_column);
  part_a.load(a, first_k);
  part_b.load(b, first_k);
  part_a.store(tile_a[0]);
  part_b.store(tile_b[0]);
  __syncthreads();

  C sum[4 * kPieces][4 * kPieces] = {};
  unsigned now = 0;
  for (std::uint64_t k = first_k; k < end_k; k += kTileSteps) {
    const bool more = k + kTileSteps < end_k;
    if (more) {
      part_a.load(a, k + kTileSteps);
      part_b.load(b, k + kTileSteps);
    }
#pragma unroll
    for (unsigned step = 0; step < kTileSteps; ++step) {
      const unsigned swap = PartA::swap_of(step);
      Quad<C> of_a[kPieces], of_b[kPieces];
#pragma unroll
      for (unsigned p = 0; p < kPieces; ++p) {
        of_a[p] = load_vector<4>(&tile_a[now][step][p * 64 + (y ^ swap)]);
        of_b[p] = load_vector<4>(&tile_b[now][step][p * 64 + (x ^ swap)]);
      }
#pragma unroll
      for (int i = 0; i < 4 * kPieces; ++i)
#pragma unroll
        for (int j = 0; j < 4 * kPieces; ++j)
          sum[i][j] += of_a[i / 4].value[i % 4] * of_b[j / 4].value[j % 4];
    }
    now ^= 1;
    if (more) {
      // Nobody reads this buffer any more: the barrier of the step before is behind all.
      part_a.store(tile_a[now]);
      part_b.store(tile_b[now]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4 * kPieces; ++i)
#pragma unroll
    for (int p = 0; p < kPieces; ++p)
      out.store(first_row + static_cast<unsigned>(i / 4) * 64 + y + static_cast<unsigned>(i % 4),
                first_column + static_cast<unsigned>(p) * 64 + x, sum[i] + p * 4);
}

}  // namespace lockstep::kernels::cuda
