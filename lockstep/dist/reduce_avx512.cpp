#include "lockstep/dist/reduce_kernel.h"

namespace lockstep::dist::detail {

void reduce_avx512(ReduceOp op, DType dtype, const void* const* inputs, int n, void* const* outputs,
                   int m, std::int64_t count) {
  reduce_all(op, dtype, inputs, n, outputs, m, count);
}

}  // namespace lockstep::dist::detail
