// A thread to a result where neighbouring results lie side by side, lanes of a warp or a block to a
// result elsewhere; several blocks to a long one, whose winners a second run compares.
#include "lockstep/kernels/extremum_cuda.h"

#include <limits>

#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/block_reduce.cuh"
#include "lockstep/kernels/device_element.cuh"
#include "lockstep/kernels/loop_plan.h"
#include "lockstep/kernels/strided_offset.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

struct AlongJob {
  const void* in;
  void* values;
  std::int64_t* indices;
  DType dtype;
  std::uint64_t results, length;
  std::int64_t step;  // between elements of a result
  int rank;
  std::uint64_t size[kMaxRank];
  std::int64_t in_stride[kMaxRank], out_stride[kMaxRank];
  unsigned lanes;  // threads to a result: 1 to 32, or all
  std::uint64_t pieces, per_piece;
  std::int64_t* winners;           // (results, pieces): written where there are several pieces
  const std::int64_t* candidates;  // (results, length): indices to choose from; null: all
};

template <class C>
struct Best {
  C value = 0;
  std::uint64_t at = kNowhere;
};

// NaN before all, then the better value, then the smaller index: an order of all candidates.
template <bool kGreatest, class C>
__device__ __forceinline__ Best<C> better_of(const Best<C>& a, const Best<C>& b) {
  if (a.at == kNowhere || b.at == kNowhere) return a.at == kNowhere ? b : a;
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan ? a : b;
  if (a_nan || a.value == b.value) return a.at < b.at ? a : b;
  return (kGreatest ? a.value > b.value : a.value < b.value) ? a : b;
}

template <bool kGreatest, class C>
__device__ __forceinline__ Best<C> better_in_group(Best<C> best, unsigned lanes) {
  for (unsigned distance = lanes / 2; distance > 0; distance /= 2) {
    const int d = static_cast<int>(distance);
    const Best<C> other = {__shfl_xor_sync(0xffffffffu, best.value, d),
                           __shfl_xor_sync(0xffffffffu, best.at, d)};
    best = better_of<kGreatest>(best, other);
  }
  return best;
}

template <class C, bool kGreatest>
__global__ void __launch_bounds__(kThreads, 2) extremum_along_kernel(AlongJob job) {
  __shared__ Best<C> of_warp[kThreads / 32];
  const unsigned lanes = job.lanes, lane = threadIdx.x % lanes;
  const std::uint64_t result = std::uint64_t{blockIdx.x} * (kThreads / lanes) + threadIdx.x / lanes;
  const bool here = result < job.results;
  Best<C> best;
  std::int64_t base = 0;
  if (here) {
    base = strided_offset(job.size, job.in_stride, job.rank, result);
    const std::uint64_t begin = blockIdx.y * job.per_piece;
    const std::uint64_t end = min(job.length, begin + job.per_piece);
#pragma unroll 4
    for (std::uint64_t k = begin + lane; k < end; k += lanes) {
      const std::uint64_t at =
          job.candidates ? static_cast<std::uint64_t>(job.candidates[result * job.length + k]) : k;
      const std::int64_t offset = base + static_cast<std::int64_t>(at) * job.step;
      best = better_of<kGreatest>(best, {load_element<C>(job.in, offset, job.dtype), at});
    }
  }
  best = better_in_group<kGreatest>(best, min(lanes, 32u));
  if (lanes > 32) {
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x == 0)
      for (unsigned warp = 1; warp < kThreads / 32; ++warp)
        best = better_of<kGreatest>(best, of_warp[warp]);
  }
  if (lane != 0 || !here) return;
  const auto at = static_cast<std::int64_t>(best.at);
  if (job.pieces > 1) {
    job.winners[result * job.pieces + blockIdx.y] = at;
    return;
  }
  const std::int64_t out = strided_offset(job.size, job.out_stride, job.rank, result);
  store_element<C>(job.values, out, job.dtype, best.value);
  job.indices[out] = at;
}

template <class C>
void launch_along(const AlongJob& job, bool greatest, cudaStream_t stream) {
  const unsigned groups = kThreads / job.lanes;
  const dim3 grid(lockstep::cuda::grid_for(static_cast<std::int64_t>(job.results), groups),
                  static_cast<unsigned>(job.pieces));
  lockstep::cuda::launch(
      "max", stream, grid, kThreads, 0,
      greatest ? extremum_along_kernel<C, true> : extremum_along_kernel<C, false>, job);
}

void launch_along(const AlongJob& job, bool greatest, cudaStream_t stream) {
  if (job.dtype == kF64) return launch_along<double>(job, greatest, stream);
  if (is_floating(job.dtype)) return launch_along<float>(job, greatest, stream);
  launch_along<std::int64_t>(job, greatest, stream);
}

void share_work(AlongJob* job) {
  constexpr std::uint64_t kPiece = 16 * kThreads, kEnough = 4096;
  job->lanes = 1;
  job->pieces = 1;
  job->per_piece = job->length;
  const bool side_by_side = job->in_stride[0] == 1 && job->step != 1 && !job->candidates;
  if (side_by_side && job->results >= kEnough) return;
  while (job->lanes < 32 && job->lanes < job->length) job->lanes *= 2;
  if (job->length <= 1024) return;
  job->lanes = kThreads;
  const std::uint64_t most = std::max<std::uint64_t>(2048 / job->results, 1);
  job->pieces = std::clamp<std::uint64_t>(job->length / kPiece, 1, most);
  job->per_piece = (job->length + job->pieces - 1) / job->pieces;
  job->pieces = (job->length + job->per_piece - 1) / job->per_piece;
}

}  // namespace

void extremum_along(const Tensor& x, int axis, bool greatest, const Tensor& values,
                    const Tensor& indices) {
  const DeviceGuard guard(x.device());
  const auto stream = current_native_stream(x.device());
  const Shape shape = x.shape().erased(axis);
  const Strides strides = x.strides().erased(axis);
  const PlanOperand operands[] = {{&shape, &strides}, {&shape, &values.strides()}};
  const LoopPlan plan = plan_loop(shape, operands);
  AlongJob job = {};
  job.in = x.data();
  job.values = values.data();
  job.indices = elements<std::int64_t>(indices);
  job.dtype = x.dtype();
  job.results = static_cast<std::uint64_t>(values.numel());
  job.length = static_cast<std::uint64_t>(x.size(axis));
  job.step = x.strides()[axis];
  job.rank = plan.rank;
  for (int i = 0; i < plan.rank; ++i) {
    job.size[i] = static_cast<std::uint64_t>(plan.size[i]);
    job.in_stride[i] = plan.stride[i][0];
    job.out_stride[i] = plan.stride[i][1];
  }
  share_work(&job);
  if (job.pieces == 1) return launch_along(job, greatest, stream);
  const Tensor winners =
      empty({values.numel(), static_cast<std::int64_t>(job.pieces)}, {kI64, x.device()});
  job.winners = elements<std::int64_t>(winners);
  launch_along(job, greatest, stream);
  job.candidates = job.winners;
  job.per_piece = job.length = job.pieces;
  job.pieces = 1;
  launch_along(job, greatest, stream);
}

}  // namespace lockstep::kernels::cuda
