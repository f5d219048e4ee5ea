// Contiguous conversions between f32 and the half types, per instruction set. Internal.
#pragma once

#include "lockstep/kernels/half_bits.h"
#include "lockstep/kernels/isa.h"

namespace lockstep::kernels {

// Defined in convert_simd.cpp.
template <Isa isa, class Half>
void widen_run(const Half* src, float* dst, std::int64_t n);
template <Isa isa, class Half>
void narrow_run(const float* src, Half* dst, std::int64_t n);

}  // namespace lockstep::kernels
