#include "lockstep/dist/reduce.h"

#include <cstring>

#include "lockstep/core/check.h"

namespace lockstep::dist {
namespace {

#if defined(__x86_64__)
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("f16c");
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"); }
#endif

detail::ReduceKernel pick_kernel() {
#if defined(__x86_64__)
  if (has_avx512()) return detail::reduce_avx512;
  if (has_avx2()) return detail::reduce_avx2;
#endif
  return detail::reduce_baseline;
}

}  // namespace

void reduce_tree(ReduceOp op, DType dtype, std::span<const void* const> inputs,
                 std::span<void* const> outputs, std::int64_t count) {
  LOCKSTEP_CHECK(!inputs.empty() && inputs.size() <= kMaxReduceInputs,
                 "reduce_tree: {} inputs, wanted 1 to {}", inputs.size(), kMaxReduceInputs);
  if (count <= 0 || outputs.empty()) return;
  if (inputs.size() == 1) {
    const std::size_t bytes = static_cast<std::size_t>(count) * dtype_size(dtype);
    for (void* output : outputs) std::memmove(output, inputs[0], bytes);
    return;
  }
  static const detail::ReduceKernel kernel = pick_kernel();
  kernel(op, dtype, inputs.data(), static_cast<int>(inputs.size()), outputs.data(),
         static_cast<int>(outputs.size()), count);
}

std::string_view reduce_instruction_set() {
#if defined(__x86_64__)
  if (has_avx512()) return "avx512";
  if (has_avx2()) return "avx2";
#endif
  return "baseline";
}

}  // namespace lockstep::dist
