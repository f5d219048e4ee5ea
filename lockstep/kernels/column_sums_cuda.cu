// Blocks of 32 x 8 threads add up a piece of the rows, a vector of columns to a thread; where there
// are several pieces, a second kernel adds their sums in order.
#include "lockstep/kernels/column_sums_cuda.h"

#include "lockstep/core/device_guard.h"
#include "lockstep/core/kernel_launch.cuh"
#include "lockstep/kernels/device_element.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr unsigned kLanes = 32, kRows = 8;

// out (pieces, columns); R is T itself where there is one piece.
template <int kN, class T, class R>
__global__ void __launch_bounds__(kLanes* kRows)
    column_sums_kernel(const T* x, R* out, std::uint64_t rows, std::uint64_t columns,
                       std::uint64_t rows_per_piece) {
  using C = Compute<T>;
  __shared__ AlignedVector<C, kN> of_row[kRows][kLanes];
  const unsigned lane = threadIdx.x % kLanes, row = threadIdx.x / kLanes;
  const std::uint64_t column = (std::uint64_t{blockIdx.x} * kLanes + lane) * kN;
  const std::uint64_t first = blockIdx.y * rows_per_piece;
  const std::uint64_t end = min(rows, first + rows_per_piece);
  AlignedVector<C, kN> sum = {};
  if (column < columns)
    for (std::uint64_t r = first + row; r < end; r += kRows) {
      const AlignedVector<T, kN> in = load_vector<kN>(x + r * columns + column);
#pragma unroll
      for (int i = 0; i < kN; ++i) sum.value[i] += convert_element<C>(in.value[i]);
    }
  of_row[row][lane] = sum;
  __syncthreads();
  if (row != 0 || column >= columns) return;
  for (unsigned r = 1; r < kRows; ++r)
#pragma unroll
    for (int i = 0; i < kN; ++i) sum.value[i] += of_row[r][lane].value[i];
#pragma unroll
  for (int i = 0; i < kN; ++i)
    out[blockIdx.y * columns + column + static_cast<unsigned>(i)] =
        convert_element<R>(sum.value[i]);
}

template <class T, class C>
__global__ void add_pieces_kernel(const C* parts, T* out, unsigned pieces, std::uint64_t columns) {
  const std::uint64_t column = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  C sum = 0;
  for (unsigned p = 0; p < pieces; ++p) sum += parts[p * columns + column];
  out[column] = convert_element<T>(sum);
}

template <int kN, class T>
void sum_columns(const Tensor& x, std::uint64_t rows, const Tensor& sum) {
  using C = Compute<T>;
  constexpr std::uint64_t kLeastRows = 128, kMostPieces = 256;  // of a piece; of all
  const auto columns = static_cast<std::uint64_t>(sum.numel());
  const auto stream = current_native_stream(sum.device());
  const std::uint64_t per_piece = std::max(kLeastRows, (rows + kMostPieces - 1) / kMostPieces);
  const auto pieces = static_cast<unsigned>((rows + per_piece - 1) / per_piece);
  const dim3 grid(lockstep::cuda::grid_for(sum.numel(), kLanes * kN), pieces);
  const auto launch = [&]<class R>(R* out) {
    lockstep::cuda::launch("column_sums", stream, grid, kLanes * kRows, 0,
                           column_sums_kernel<kN, T, R>, elements<T>(x), out, rows, columns,
                           per_piece);
  };
  if (pieces == 1) return launch(elements<T>(sum));
  const Tensor parts = empty({static_cast<std::int64_t>(pieces * columns)},
                             {sizeof(C) == 8 ? kF64 : kF32, sum.device()});
  launch(elements<C>(parts));
  lockstep::cuda::launch("column_sums", stream,
                         lockstep::cuda::grid_for(sum.numel(), lockstep::cuda::kBlockThreads),
                         lockstep::cuda::kBlockThreads, 0, add_pieces_kernel<T, C>,
                         elements<C>(parts), elements<T>(sum), pieces, columns);
}

}  // namespace

void column_sums(const Tensor& x, std::int64_t rows, const Tensor& sum) {
  const DeviceGuard guard(sum.device());
  visit_device_floating(sum.dtype(), "column_sums", [&]<class T>() {
    constexpr int kN = kVectorElements<T>;
    const auto n = static_cast<std::uint64_t>(rows);
    const bool vectors =
        sum.numel() % kN == 0 && reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0;
    vectors ? sum_columns<kN, T>(x, n, sum) : sum_columns<1, T>(x, n, sum);
  });
}

}  // namespace lockstep::kernels::cuda
