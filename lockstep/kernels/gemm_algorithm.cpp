#include "lockstep/kernels/gemm_algorithm.h"

#include <atomic>

#include "lockstep/core/check.h"

namespace lockstep::kernels {
namespace {

std::atomic<GemmAlgorithm> g_algorithm{GemmAlgorithm::kAuto};

}  // namespace

void set_gemm_algorithm(GemmAlgorithm algorithm) { g_algorithm = algorithm; }
GemmAlgorithm gemm_algorithm() { return g_algorithm; }

GemmAlgorithm gemm_algorithm_from_name(std::string_view name) {
  if (name == "auto") return GemmAlgorithm::kAuto;
  if (name == "library") return GemmAlgorithm::kLibrary;
  LOCKSTEP_CHECK(name == "tiled", "gemm: expected auto, library or tiled but got \"{}\"", name);
  return GemmAlgorithm::kTiled;
}

}  // namespace lockstep::kernels
