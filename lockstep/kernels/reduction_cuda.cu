// Reductions that are carried out in f32.
#include "lockstep/kernels/reduction.cuh"

namespace lockstep::kernels::cuda {

template void run_reduction<float>(const ReductionJob&, ReductionOp, CUstream_st*);

}  // namespace lockstep::kernels::cuda
