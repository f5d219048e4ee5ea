// What ptxrun counted in launches; how kernel_traffic asks the executor for it.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace lockstep::testing {

struct PtxStats {
  std::uint64_t launches = 0;
  std::uint64_t global_requests = 0;  // of warps
  std::uint64_t global_sectors = 0;   // of 32 bytes
  std::uint64_t shared_requests = 0;  // of warps
  std::uint64_t shared_wavefronts = 0;
  std::set<std::string> symbols;  // of the kernels, as nvcc mangled them
};

// Since the last call; counted where LOCKSTEP_PTX_STATS is set. Exported by the executor's library.
inline constexpr const char* kTakePtxStats = "take_ptx_stats";
using TakePtxStats = void (*)(PtxStats* stats);

}  // namespace lockstep::testing
