// Reductions that are carried out in f64 and i64.
#include "lockstep/kernels/reduction.cuh"

namespace lockstep::kernels::cuda {

template void run_reduction<double>(const ReductionJob&, ReductionOp, CUstream_st*);
template void run_reduction<std::int64_t>(const ReductionJob&, ReductionOp, CUstream_st*);

}  // namespace lockstep::kernels::cuda
