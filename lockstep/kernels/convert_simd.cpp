#include "lockstep/kernels/convert_loops.h"
#include "lockstep/kernels/pointwise_loops.h"

namespace lockstep::kernels {
namespace {

LOCKSTEP_POINTWISE void narrow_to(float x, F16Bits* y) { *y = narrow_f16(x); }
LOCKSTEP_POINTWISE void narrow_to(float x, BF16Bits* y) { *y = narrow_bf16(x); }

}  // namespace

template <Isa isa, class Half>
void widen_run(const Half* src, float* dst, std::int64_t n) {
  LOCKSTEP_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) dst[i] = widen(src[i]);
}

template <Isa isa, class Half>
void narrow_run(const float* src, Half* dst, std::int64_t n) {
  LOCKSTEP_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) narrow_to(src[i], dst + i);
}

template void widen_run<Isa::LOCKSTEP_ISA>(const F16Bits*, float*, std::int64_t);
template void widen_run<Isa::LOCKSTEP_ISA>(const BF16Bits*, float*, std::int64_t);
template void narrow_run<Isa::LOCKSTEP_ISA>(const float*, F16Bits*, std::int64_t);
template void narrow_run<Isa::LOCKSTEP_ISA>(const float*, BF16Bits*, std::int64_t);

}  // namespace lockstep::kernels
