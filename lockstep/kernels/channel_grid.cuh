// Threads over a matrix (rows, C) in memory, C innermost: how images, sequences and vectors are
// walked when something is computed per channel. Internal: device code.
//
// A thread has kN channels side by side and some rows; `lanes` threads side by side share a row.
#pragma once

#include <algorithm>

#include "lockstep/core/kernel_launch.cuh"
#include "lockstep/kernels/device_element.cuh"

namespace lockstep::kernels::cuda {

struct ChannelGrid {
  static constexpr unsigned kThreads = 256;
  std::uint64_t rows = 0, channels = 0;
  std::uint64_t rows_per_piece = 0;  // a block's
  unsigned lanes = 1;                // a power of two, at most 32
  unsigned pieces = 1;

  // Pieces are as many as `most` allows, with at least four rows to a thread. They depend on the
  // shape only, and so does the order of sums.
  ChannelGrid(std::int64_t rows_in_all, std::int64_t channels_in_all, int kN, std::uint64_t most)
      : rows(static_cast<std::uint64_t>(rows_in_all)),
        channels(static_cast<std::uint64_t>(channels_in_all)) {
    while (lanes < 32 && std::uint64_t{lanes} * static_cast<unsigned>(kN) < channels) lanes *= 2;
    const std::uint64_t wanted = std::uint64_t{kThreads / lanes} * 4;
    rows_per_piece = std::max(wanted, (rows + most - 1) / most);
    pieces = static_cast<unsigned>((rows + rows_per_piece - 1) / rows_per_piece);
  }

  dim3 grid(int kN) const {
    return dim3(lockstep::cuda::grid_for(static_cast<std::int64_t>(channels),
                                         static_cast<std::int64_t>(lanes) * kN),
                pieces);
  }
};

// One thread's share.
struct ChannelThread {
  std::uint64_t channel;         // the first; none beyond grid.channels
  std::uint64_t row, end, step;  // row, row + step, …

  __device__ __forceinline__ ChannelThread(const ChannelGrid& grid, int kN) {
    step = ChannelGrid::kThreads / grid.lanes;
    channel = (std::uint64_t{blockIdx.x} * grid.lanes + threadIdx.x % grid.lanes) *
              static_cast<unsigned>(kN);
    const std::uint64_t first = blockIdx.y * grid.rows_per_piece;
    row = first + threadIdx.x / grid.lanes;
    end = min(grid.rows, first + grid.rows_per_piece);
  }
};

// Adds up over the block's threads with the same channels, in one order; the result is right in the
// threads of the block's first row. All threads must come.
template <int kN, class C>
__device__ __forceinline__ void add_over_rows(C (&sum)[kN], unsigned lanes,
                                              C (*scratch)[ChannelGrid::kThreads]) {
  __syncthreads();  // whoever used it before is done
#pragma unroll
  for (int i = 0; i < kN; ++i) scratch[i][threadIdx.x] = sum[i];
  for (unsigned half = ChannelGrid::kThreads / 2; half >= lanes; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
#pragma unroll
      for (int i = 0; i < kN; ++i)
        scratch[i][threadIdx.x] = sum[i] = sum[i] + scratch[i][threadIdx.x + half];
  }
}

}  // namespace lockstep::kernels::cuda
