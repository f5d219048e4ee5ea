// kernel_traffic EXECUTOR PTX_FOLDER: runs each case's kernels as PTX and prints what they moved, a
// JSON object per line. kernel_table.py makes the table.
#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <exception>

#include "lockstep/core/current_stream.h"
#include "lockstep/core/device_memory.h"
#include "ptx/ptx_stats.h"
#include "ptx/traffic_case.h"

namespace lockstep::testing {
namespace {

void run(const TrafficCase& each, TakePtxStats take) {
  const auto op = each.prepare();
  current_stream(cuda_device()).synchronize();
  PtxStats stats;
  take(&stats);
  op();
  current_stream(cuda_device()).synchronize();
  take(&stats);
  std::string symbols;
  for (const std::string& symbol : stats.symbols)
    symbols += fmt::format("{}\"{}\"", symbols.empty() ? "" : ", ", symbol);
  fmt::print(
      "{{\"name\": \"{}\", \"minimum\": {}, \"most\": {}, \"bytes\": {}, \"accesses\": {}, "
      "\"width\": {}, \"launches\": {}, \"requests\": {}, \"wavefronts\": {}, \"free_wavefronts\": "
      "{}, \"kernels\": [{}]}}\n",
      each.name, each.minimum_bytes, each.most, 32 * stats.global_sectors, stats.global_requests,
      each.bytes_per_access, stats.launches, stats.shared_requests, stats.shared_wavefronts,
      each.free_wavefronts, symbols);
}

int run_all(const char* executor, const char* folder) {
  setenv("LOCKSTEP_VGPU_EXECUTOR", executor, 1);
  setenv("LOCKSTEP_PTX_FOLDER", folder, 1);
  setenv("LOCKSTEP_PTX_STATS", "1", 1);
  set_device_memory_caching(false);
  void* const library = dlopen(executor, RTLD_NOW | RTLD_LOCAL);
  const auto take =
      library ? reinterpret_cast<TakePtxStats>(dlsym(library, kTakePtxStats)) : nullptr;
  if (take == nullptr) {
    fmt::print(stderr, "kernel_traffic: {} is not the executor's library\n", executor);
    return 1;
  }
  for (const auto& cases : {pointwise_cases, optimizer_cases, row_cases})
    for (const TrafficCase& each : cases()) run(each, take);
  return 0;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: kernel_traffic EXECUTOR PTX_FOLDER\n");
    return 2;
  }
  try {
    return lockstep::testing::run_all(argv[1], argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernel_traffic: {}\n", error.what());
    return 1;
  }
}
