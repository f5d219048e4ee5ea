// Which instruction set the hot loops run on. Files named *_simd.cpp are compiled once per entry of
// Isa (cmake/isa.cmake); this says which of the copies the processor at hand can run.
#pragma once

#include <cstdint>

namespace lockstep::kernels {

enum class Isa : std::uint8_t {
  kBaseline,  // what the whole library is built for (plain x86-64, or another architecture)
  kAvx2,      // AVX2, FMA, F16C
  kAvx512,    // AVX-512 F, VL, BW, DQ
};

// The widest that both this processor and the build support. Constant over the process's life.
Isa best_isa();

}  // namespace lockstep::kernels
