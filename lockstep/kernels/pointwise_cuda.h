// Element-wise ops on CUDA devices: the host's side. The kernels are instantiated in the *_cuda.cu
// file that stands beside the op's *_cpu.cpp, with pointwise_cuda.cuh. Internal.
#pragma once

#include <span>

#include "lockstep/kernels/operand.h"
#include "lockstep/kernels/pointwise_kind.h"

struct CUstream_st;

namespace lockstep::kernels::cuda {

inline constexpr int kMaxPointwiseInputs = 3;

// What a kernel is told: index 0 of dtype, stride and single is the output, 1 … the inputs.
struct PointwiseJob {
  const char* name;
  Device device;
  CUstream_st* stream;
  std::int64_t n = 0;
  int inputs = 0;
  int rank = 0;  // axis 0 is the innermost
  std::int64_t size[kMaxRank];
  std::int64_t stride[kMaxRank][kMaxPointwiseInputs + 1];
  void* out = nullptr;
  const void* in[kMaxPointwiseInputs] = {};  // null: a number
  double real[kMaxPointwiseInputs] = {};
  std::int64_t integer[kMaxPointwiseInputs] = {};
  DType dtype[kMaxPointwiseInputs + 1] = {};
  DType compute;
  // All tensors lie in one order without gaps, share one dtype (the output may be bool), and are
  // aligned to 16 bytes.
  bool packed = false;
  // All share one dtype, and along axis 0 each lies side by side in whole vectors of 16 bytes or
  // has one element for all: a bias, a scale per channel, rows of a wider matrix.
  bool vector_rows = false;
};

// Checks devices; copies inputs that overlap the output in another layout. `copies` keep them
// alive.
PointwiseJob plan_pointwise(const char* name, const Tensor& out, DType compute,
                            std::span<const Operand> inputs, Tensor* copies);

// out = op(inputs). Defined in pointwise_cuda.cuh.
template <ResultKind kind, Arity arity, class Op>
void run_pointwise_kernel(const PointwiseJob& job, const Op& op);

template <ResultKind kind, Arity arity, class Op>
void run_pointwise(const char* name, const Op& op, const Tensor& out, DType compute,
                   std::span<const Operand> inputs) {
  Tensor copies[kMaxPointwiseInputs];
  const PointwiseJob job = plan_pointwise(name, out, compute, inputs, copies);
  if (job.n > 0) run_pointwise_kernel<kind, arity>(job, op);
}

}  // namespace lockstep::kernels::cuda
