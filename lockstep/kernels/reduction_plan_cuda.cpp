// From tensors to what a reduction's kernel is told.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/loop_plan.h"
#include "lockstep/kernels/reduction_cuda.h"
#include "lockstep/kernels/vector_access.h"

namespace lockstep::kernels::cuda {
namespace {

constexpr std::uint64_t kThreads = 256;
constexpr std::uint64_t kEnoughBlocks = 2048;  // more pieces are of no use
constexpr std::uint64_t kLeastPerThread = 16;  // vectors or rows of a piece

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// The smallest power of two that is at least n, at most 32.
unsigned lanes_for(std::uint64_t n) {
  unsigned lanes = 1;
  while (lanes < 32 && lanes < n) lanes *= 2;
  return lanes;
}

void divide_work(ReductionJob* job, std::uint64_t items, std::uint64_t least,
                 std::uint64_t blocks) {
  const std::uint64_t most = std::max<std::uint64_t>(kEnoughBlocks / blocks, 1);
  job->per_piece = divide_up(items, std::clamp<std::uint64_t>(items / least, 1, most));
  job->pieces = static_cast<unsigned>(std::max<std::uint64_t>(divide_up(items, job->per_piece), 1));
}

bool multiples(const std::int64_t* strides, int begin, int rank, std::int64_t n) {
  return std::all_of(strides + begin, strides + std::max(begin, rank),
                     [n](std::int64_t stride) { return stride % n == 0; });
}

// Chooses the kernel and how its threads share the work.
void share_work(ReductionJob* job, bool own_dtype) {
  const auto per_vector = static_cast<std::int64_t>(kVectorBytes / dtype_size(job->in_dtype));
  const bool aligned = is_vector_aligned(job->in);
  const bool even_rows = aligned && multiples(job->kept_in, 1, job->kept_rank, per_vector) &&
                         multiples(job->reduced_stride, 1, job->reduced_rank, per_vector);
  job->columns = job->kept_in[0] == 1 && job->kept_size[0] >= 4 && job->count > 1 &&
                 job->reduced_stride[0] != 1;
  std::uint64_t n = 1;
  if (job->columns) {
    job->vectors = own_dtype && even_rows && job->reduced_stride[0] % per_vector == 0 &&
                   job->kept_size[0] % static_cast<std::uint64_t>(per_vector) == 0;
    if (job->vectors) n = static_cast<std::uint64_t>(per_vector);
    job->lanes = lanes_for(divide_up(job->kept_size[0], n));
    const std::uint64_t rows = kThreads / job->lanes;
    const std::uint64_t blocks =
        job->results / job->kept_size[0] * divide_up(job->kept_size[0], job->lanes * n);
    divide_work(job, job->count, rows * kLeastPerThread, blocks);
    return;
  }
  // Rows of one axis may begin anywhere.
  job->vectors = own_dtype && job->reduced_stride[0] == 1 &&
                 (job->reduced_rank == 1 ||
                  (even_rows && job->kept_in[0] % per_vector == 0 &&
                   job->reduced_size[0] % static_cast<std::uint64_t>(per_vector) == 0));
  if (job->vectors) n = static_cast<std::uint64_t>(per_vector);
  const std::uint64_t vectors = job->count / n;
  job->pieces = 1;
  job->per_piece = std::max<std::uint64_t>(vectors, 1);
  job->lanes = lanes_for(vectors);
  if (vectors <= 32 * kLeastPerThread) return;
  job->lanes = kThreads;
  divide_work(job, vectors, kThreads * kLeastPerThread, job->results);
}

void run(const ReductionJob& job, ReductionOp op, CUstream_st* stream) {
  if (job.join_type == kF32) return run_reduction<float>(job, op, stream);
  if (job.join_type == kF64) return run_reduction<double>(job, op, stream);
  run_reduction<std::int64_t>(job, op, stream);
}

// What joins results of pieces.
ReductionOp joining(ReductionOp op) {
  switch (op) {
    case ReductionOp::kMin:
      return ReductionOp::kMin;
    case ReductionOp::kMax:
    case ReductionOp::kMaxAbs:
      return ReductionOp::kMax;
    default:
      return ReductionOp::kSum;
  }
}

void run_in_pieces(ReductionJob job, ReductionOp op, Device device, CUstream_st* stream) {
  if (job.pieces == 1) return run(job, op, stream);
  const auto results = static_cast<std::int64_t>(job.results);
  const Tensor parts = empty({results * job.pieces}, {job.join_type, device});
  ReductionJob first = job;
  first.out = parts.data();
  run(first, op, stream);
  job.in = parts.data();
  job.in_dtype = job.join_type;
  job.count = job.pieces;
  job.reduced_rank = 1;
  job.reduced_size[0] = job.pieces;
  job.reduced_stride[0] = job.columns ? results : 1;
  std::int64_t step = job.columns ? 1 : job.pieces;
  for (int axis = 0; axis < job.kept_rank; ++axis) {
    job.kept_in[axis] = step;
    step *= static_cast<std::int64_t>(job.kept_size[axis]);
  }
  share_work(&job, true);
  run_in_pieces(job, joining(op), device, stream);
}

// The axes of x that are (or are not) in the set.
void split_axes(const Tensor& x, unsigned axes, bool in_set, Shape* shape, Strides* strides) {
  for (int i = 0; i < x.dim(); ++i) {
    if (((axes >> i & 1) != 0) != in_set) continue;
    shape->push_back(x.shape()[i]);
    strides->push_back(x.strides()[i]);
  }
}

}  // namespace

void reduce_into(const Tensor& x, unsigned axes, DType compute, ReductionOp op, const Tensor& out,
                 double divisor) {
  const DeviceGuard guard(x.device());
  Shape kept_shape, kept_out_shape, reduced_shape;
  Strides kept_in, kept_out, reduced_in;
  split_axes(x, axes, false, &kept_shape, &kept_in);
  split_axes(out, axes, false, &kept_out_shape, &kept_out);
  split_axes(x, axes, true, &reduced_shape, &reduced_in);
  // Both are walked in the input's order: that is where the bytes are.
  const PlanOperand of_kept[] = {{&kept_shape, &kept_in}, {&kept_shape, &kept_out}};
  const PlanOperand of_reduced[] = {{&reduced_shape, &reduced_in}};
  const LoopPlan kept = plan_loop(kept_shape, of_kept);
  const LoopPlan reduced = plan_loop(reduced_shape, of_reduced);
  ReductionJob job = {};
  job.in = x.data();
  job.out = out.data();
  job.in_dtype = x.dtype();
  job.out_dtype = out.dtype();
  job.results = static_cast<std::uint64_t>(out.numel());
  job.count = static_cast<std::uint64_t>(reduced_shape.numel());
  job.kept_rank = kept.rank;
  job.reduced_rank = reduced.rank;
  for (int axis = 0; axis < kept.rank; ++axis) {
    job.kept_size[axis] = static_cast<std::uint64_t>(kept.size[axis]);
    job.kept_in[axis] = kept.stride[axis][0];
    job.kept_out[axis] = kept.stride[axis][1];
  }
  for (int axis = 0; axis < reduced.rank; ++axis) {
    job.reduced_size[axis] = static_cast<std::uint64_t>(reduced.size[axis]);
    job.reduced_stride[axis] = reduced.stride[axis][0];
  }
  job.divisor = divisor;
  job.join_type = compute;
  const bool half = x.dtype() == kF16 || x.dtype() == kBF16;
  const bool own_dtype =
      x.dtype() == compute || (half && compute == kF32) ||
      ((half || x.dtype() == kF32) && compute == kF64 && op == ReductionOp::kSumSquares);
  share_work(&job, own_dtype);
  run_in_pieces(job, op, x.device(), current_native_stream(x.device()));
}

}  // namespace lockstep::kernels::cuda
