// Launches gemm_tile.cuh's kernel: chooses tiles, and splits k where there are few of them, so that
// the device has work. The choice depends on the shapes only, and so do the bits. Internal: device
// code.
#pragma once

#include <algorithm>

#include "lockstep/core/current_stream.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/gemm_tile.cuh"
#include "lockstep/kernels/matrix_out.cuh"

namespace lockstep::kernels::cuda {

// out = the parts, (splits, batches, rows, columns) of C, added up in their order.
template <class T, class C>
__global__ void add_splits_kernel(MatrixOut<T> out, const C* parts, unsigned splits,
                                  std::uint64_t part_stride) {
  const std::uint64_t quads = (out.columns + 3) / 4;
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= out.rows * quads) return;
  const std::uint64_t row = i / quads, column = i % quads * 4;
  parts += (blockIdx.z * out.rows + row) * out.columns + column;
  C sum[4] = {};
  for (unsigned split = 0; split < splits; ++split)
    for (unsigned j = 0; j < 4; ++j)
      if (column + j < out.columns) sum[j] += parts[split * part_stride + j];
  out.select(blockIdx.z, 0);
  out.store(row, column, sum);
}

inline constexpr std::uint64_t kWantedBlocks = 256;
inline constexpr std::uint64_t kLeastSplit = 256;  // of k

// out = a b for `batches` products (at most 65535).
template <class T, class A, class B>
void multiply_tiles(const char* name, const A& a, const B& b, const MatrixOut<T>& out,
                    unsigned batches, Device device) {
  using C = Compute<T>;
  const auto stream = current_native_stream(device);
  const auto tiles_of = [&](std::uint64_t tile) {
    return (out.rows + tile - 1) / tile * ((out.columns + tile - 1) / tile);
  };
  const auto launch = [&]<int kTile>(const auto& to, unsigned splits, std::uint64_t per_split) {
    const TileGrid grid{(out.columns + kTile - 1) / kTile, a.k, per_split};
    lockstep::cuda::launch(
        name, stream, dim3(static_cast<unsigned>(tiles_of(kTile)), splits, batches), kTileThreads,
        0, gemm_tile_kernel<T, kTile, A, B, std::decay_t<decltype(to)>>, a, b, to, grid);
  };
  if constexpr (sizeof(C) == 4)
    if (tiles_of(128) * batches >= kWantedBlocks / 2)
      return launch.template operator()<128>(out, 1, a.k + kTileSteps);
  const std::uint64_t blocks = tiles_of(64) * batches;
  const std::uint64_t most = (a.k + kLeastSplit - 1) / kLeastSplit;
  const std::uint64_t wanted = std::min((kWantedBlocks + blocks - 1) / blocks, most);
  if (wanted <= 1) return launch.template operator()<64>(out, 1, a.k + kTileSteps);

  std::uint64_t per_split = (a.k + wanted - 1) / wanted;
  per_split = (per_split + kTileSteps - 1) / kTileSteps * kTileSteps;
  const auto splits = static_cast<unsigned>((a.k + per_split - 1) / per_split);
  const std::uint64_t part = batches * out.rows * out.columns;
  const Tensor parts =
      empty({static_cast<std::int64_t>(splits * part)}, {sizeof(C) == 8 ? kF64 : kF32, device});
  MatrixOut<C> to;
  to.data = elements<C>(parts);
  to.rows = out.rows;
  to.columns = to.row_stride = out.columns;
  to.batch_stride = out.rows * out.columns;
  to.split_stride = part;
  to.vectors = out.columns % 4 == 0;
  launch.template operator()<64>(to, splits, per_split);
  const std::uint64_t quads = out.rows * ((out.columns + 3) / 4);
  lockstep::cuda::launch("add_splits", stream,
                         dim3(lockstep::cuda::grid_for(static_cast<std::int64_t>(quads),
                                                       lockstep::cuda::kBlockThreads),
                              1, batches),
                         lockstep::cuda::kBlockThreads, 0, add_splits_kernel<T, C>, out,
                         elements<C>(parts), splits, part);
}

}  // namespace lockstep::kernels::cuda
