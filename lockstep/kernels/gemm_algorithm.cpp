#include "lockstep/kernels/gemm_algorithm.h"

#include <atomic>

namespace lockstep::kernels {
namespace {

std::atomic<GemmAlgorithm> g_algorithm{GemmAlgorithm::kAuto};

}  // namespace

void set_gemm_algorithm(GemmAlgorithm algorithm) { g_algorithm = algorithm; }
GemmAlgorithm gemm_algorithm() { return g_algorithm; }

}  // namespace lockstep::kernels
