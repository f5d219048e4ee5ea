#include "lockstep/kernels/reduction_math.h"

namespace lockstep::kernels {

using namespace reduction;
constexpr Isa kIsa = Isa::LOCKSTEP_ISA;

namespace {

template <class Op>
void run_f32(const void* x, std::int64_t n, void* result) {
  reduce_run_body<Op, float>(x, n, result);
}
template <class Op>
void start_f32(void* acc, const void* x, std::int64_t n) {
  start_body<Op, float>(acc, x, n);
}
template <class Op>
void accumulate_f32(void* acc, const void* x, std::int64_t n) {
  accumulate_body<Op, float>(acc, x, n);
}
template <class Op>
void combine_f32(void* acc, const void* x, std::int64_t n) {
  combine_body<Op, float>(acc, x, n);
}

}  // namespace

template <Isa isa, class Op>
ReductionLoops reduction_loops_f32() {
  return {&run_f32<Op>, &start_f32<Op>, &accumulate_f32<Op>, &combine_f32<Op>, Op::kOp};
}

template ReductionLoops reduction_loops_f32<kIsa, Sum>();
template ReductionLoops reduction_loops_f32<kIsa, SumSquares>();
template ReductionLoops reduction_loops_f32<kIsa, SumAbs>();
template ReductionLoops reduction_loops_f32<kIsa, Max>();
template ReductionLoops reduction_loops_f32<kIsa, Min>();
template ReductionLoops reduction_loops_f32<kIsa, MaxAbs>();

}  // namespace lockstep::kernels
