// One thread per element, in the order of the destination: its stores lie side by side. Where the
// source lies side by side along another axis, tiles of both axes go through shared memory.
#include "lockstep/core/copy_kernels_cuda.h"
#include "lockstep/core/error.h"
#include "lockstep/core/kernel_launch.cuh"

namespace lockstep::cuda {
namespace {

// `Index` is 32 bits wherever that holds all positions: division by it costs a quarter.
template <class Unit, class Index>
__global__ void copy_strided_kernel(CopyPlan plan, Index n, Unit* dst, const Unit* src) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    Index rest = i;
    std::int64_t to = 0, from = 0;
    for (int axis = plan.rank - 1; axis > 0; --axis) {
      const Index size = static_cast<Index>(plan.size[axis]);
      const Index next = rest / size;
      const std::int64_t at = rest - next * size;
      to += at * plan.dst[axis];
      from += at * plan.src[axis];
      rest = next;
    }
    if (plan.rank > 0) {
      to += static_cast<std::int64_t>(rest) * plan.dst[0];
      from += static_cast<std::int64_t>(rest) * plan.src[0];
    }
    dst[to] = src[from];
  }
}

constexpr unsigned kTile = 32, kTileRows = kBlockThreads / kTile;

// Axis `column` lies side by side in src, the last axis in dst; the other axes are `outer`.
struct Transposition {
  std::uint64_t columns, rows;  // sizes of `column` and of the last axis
  std::uint64_t column_tiles, row_tiles;
  std::int64_t dst_column, src_row;  // strides; the other two are 1
  CopyPlan outer;
};

template <class Unit>
__global__ void transpose_kernel(Transposition t, Unit* dst, const Unit* src) {
  // An odd number of 4-byte words to a row keeps columns out of one bank.
  __shared__ Unit tile[kTile][kTile + (sizeof(Unit) < 4 ? 4 / sizeof(Unit) : 1)];
  const unsigned x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  std::uint64_t rest = blockIdx.x;
  const std::uint64_t first_row = rest % t.row_tiles * kTile;
  rest /= t.row_tiles;
  const std::uint64_t first_column = rest % t.column_tiles * kTile;
  rest /= t.column_tiles;
  for (int axis = t.outer.rank - 1; axis >= 0; --axis) {
    const std::uint64_t size = static_cast<std::uint64_t>(t.outer.size[axis]);
    const std::int64_t at = static_cast<std::int64_t>(rest % size);
    dst += at * t.outer.dst[axis];
    src += at * t.outer.src[axis];
    rest /= size;
  }
  const std::uint64_t read_column = first_column + x;
  for (unsigned r = y; r < kTile; r += kTileRows) {
    const std::uint64_t row = first_row + r;
    if (row < t.rows && read_column < t.columns)
      tile[r][x] =
          src[static_cast<std::int64_t>(row) * t.src_row + static_cast<std::int64_t>(read_column)];
  }
  __syncthreads();
  const std::uint64_t write_row = first_row + x;
  for (unsigned r = y; r < kTile; r += kTileRows) {
    const std::uint64_t column = first_column + r;
    if (column < t.columns && write_row < t.rows)
      dst[static_cast<std::int64_t>(column) * t.dst_column + static_cast<std::int64_t>(write_row)] =
          tile[x][r];
  }
}

template <class Unit>
__global__ void fill_strided_kernel(CopyPlan plan, std::uint64_t n, Unit* dst, Unit value) {
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step) {
    std::uint64_t rest = i;
    std::int64_t to = 0;
    for (int axis = plan.rank - 1; axis >= 0; --axis) {
      const std::uint64_t size = static_cast<std::uint64_t>(plan.size[axis]);
      to += static_cast<std::int64_t>(rest % size) * plan.dst[axis];
      rest /= size;
    }
    dst[to] = value;
  }
}

std::int64_t count(const CopyPlan& plan) {
  std::int64_t n = 1;
  for (int i = 0; i < plan.rank; ++i) n *= plan.size[i];
  return n;
}

constexpr std::int64_t kMostBlocks = 1 << 16;
constexpr std::int64_t kHalfOf32Bits = std::int64_t{1} << 31;

// The blocks of a transposition; 0 where the copy is none, or too small to gain from it.
std::int64_t plan_transposition(const CopyPlan& plan, Transposition* t) {
  const int last = plan.rank - 1;
  int column = -1;
  for (int axis = 0; axis < last; ++axis)
    if (plan.src[axis] == 1 && plan.size[axis] >= kTile / 2) column = axis;
  if (column < 0 || plan.dst[last] != 1 || plan.size[last] < kTile / 2) return 0;
  t->columns = static_cast<std::uint64_t>(plan.size[column]);
  t->rows = static_cast<std::uint64_t>(plan.size[last]);
  t->column_tiles = (t->columns + kTile - 1) / kTile;
  t->row_tiles = (t->rows + kTile - 1) / kTile;
  t->dst_column = plan.dst[column];
  t->src_row = plan.src[last];
  t->outer.rank = 0;
  auto blocks = static_cast<std::int64_t>(t->column_tiles * t->row_tiles);
  for (int axis = 0; axis < last; ++axis) {
    if (axis == column) continue;
    const int at = t->outer.rank++;
    t->outer.size[at] = plan.size[axis];
    t->outer.dst[at] = plan.dst[axis];
    t->outer.src[at] = plan.src[axis];
    blocks *= plan.size[axis];
  }
  return blocks < kHalfOf32Bits ? blocks : 0;
}

template <class Unit>
void copy_units(const CopyPlan& plan, void* dst, const void* src, cudaStream_t stream) {
  const std::int64_t n = count(plan);
  const unsigned grid = grid_for(n, kBlockThreads, kMostBlocks);
  auto* to = static_cast<Unit*>(dst);
  const auto* from = static_cast<const Unit*>(src);
  Transposition t = {};
  if (const std::int64_t blocks = plan_transposition(plan, &t); blocks > 0) {
    launch("transpose", stream, static_cast<unsigned>(blocks), kBlockThreads, 0,
           transpose_kernel<Unit>, t, to, from);
    return;
  }
  // Below 2^31 the step past the end still fits 32 bits.
  if (n < kHalfOf32Bits)
    launch("copy_strided", stream, grid, kBlockThreads, 0, copy_strided_kernel<Unit, std::uint32_t>,
           plan, static_cast<std::uint32_t>(n), to, from);
  else
    launch("copy_strided", stream, grid, kBlockThreads, 0, copy_strided_kernel<Unit, std::uint64_t>,
           plan, static_cast<std::uint64_t>(n), to, from);
}

template <class Unit>
void fill_units(const CopyPlan& plan, void* dst, std::uint64_t bits, cudaStream_t stream) {
  const std::int64_t n = count(plan);
  launch("fill_strided", stream, grid_for(n, kBlockThreads, kMostBlocks), kBlockThreads, 0,
         fill_strided_kernel<Unit>, plan, static_cast<std::uint64_t>(n), static_cast<Unit*>(dst),
         static_cast<Unit>(bits));
}

}  // namespace

void copy_strided(const CopyPlan& plan, void* dst, const void* src, int unit, CUstream_st* stream) {
  switch (unit) {
    case 1:
      return copy_units<std::uint8_t>(plan, dst, src, stream);
    case 2:
      return copy_units<std::uint16_t>(plan, dst, src, stream);
    case 4:
      return copy_units<std::uint32_t>(plan, dst, src, stream);
    default:
      return copy_units<std::uint64_t>(plan, dst, src, stream);
  }
}

void fill_strided(const CopyPlan& plan, void* dst, std::uint64_t bits, int unit,
                  CUstream_st* stream) {
  switch (unit) {
    case 1:
      return fill_units<std::uint8_t>(plan, dst, bits, stream);
    case 2:
      return fill_units<std::uint16_t>(plan, dst, bits, stream);
    case 4:
      return fill_units<std::uint32_t>(plan, dst, bits, stream);
    default:
      return fill_units<std::uint64_t>(plan, dst, bits, stream);
  }
}

}  // namespace lockstep::cuda
