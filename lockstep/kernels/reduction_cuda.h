// The engine of reductions on CUDA devices: the host's side. Internal.
//
// Where one result's elements lie side by side, lanes of a warp share it, a block or several blocks
// do; where the results lie side by side, threads take neighbouring results and blocks take pieces
// of the rows. Pieces are joined by a second run over their results. Each thread adds up every
// n-th vector, threads and pieces are joined as trees: an order that depends on shape, strides and
// alignment alone.
#pragma once

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/reduction_ops.h"

struct CUstream_st;

namespace lockstep::kernels::cuda {

// What a kernel is told. Axis 0 is the innermost in the input; strides in elements.
struct ReductionJob {
  const void* in;
  void* out;
  DType in_dtype, out_dtype;
  std::uint64_t results, count;  // count: elements of each result
  int kept_rank, reduced_rank;   // at least 1
  std::uint64_t kept_size[kMaxRank], reduced_size[kMaxRank];
  std::int64_t kept_in[kMaxRank], kept_out[kMaxRank], reduced_stride[kMaxRank];
  double divisor;
  // Threads of a block that share a result (rows: 1 to 32, or all) or lie along the results
  // (columns: 1 to 32); vectors or rows of a piece, where there are several.
  unsigned lanes;
  unsigned pieces;
  std::uint64_t per_piece;
  bool columns;
  bool vectors;     // elements are read 16 bytes at a time
  DType join_type;  // the compute type, in which pieces' results are kept
};

// One launch; pieces' results go to `out` as (results, pieces), of columns (pieces, results), in C:
// float, double or std::int64_t. Defined in reduction.cuh.
template <class C>
void run_reduction(const ReductionJob& job, ReductionOp op, CUstream_st* stream);

// out = reduction of x over the set of axes, divided by divisor. out has these axes as size 1, any
// dtype and layout. Requires elements in both.
void reduce_into(const Tensor& x, unsigned axes, DType compute, ReductionOp op, const Tensor& out,
                 double divisor);

}  // namespace lockstep::kernels::cuda
