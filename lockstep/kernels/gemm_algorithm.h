// How products of matrices are computed on CUDA devices, for study and comparison.
#pragma once

namespace lockstep::kernels {

enum class GemmAlgorithm {
  kAuto,     // cuBLASLt where it has a kernel for the strides, else kTiled
  kLibrary,  // cuBLASLt, else Error
  kTiled,    // our own without tensor cores
};

// Of the whole process, kAuto in the beginning. Thread-safe.
void set_gemm_algorithm(GemmAlgorithm algorithm);
GemmAlgorithm gemm_algorithm();

}  // namespace lockstep::kernels
