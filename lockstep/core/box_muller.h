// 16 uniform numbers to 16 normal ones: Box-Muller with the bits of PyTorch's f32 CPU kernel.
#pragma once

namespace lockstep {

// values[j] and values[j+8] in [0, 1) become r cos(t) * std + mean and r sin(t) * std + mean with
// r = sqrt(-2 log(1 - values[j])), t = 2 pi values[j+8]. The logarithm, sine and cosine are
// Cephes' single-precision polynomials; which products are fused into additions is part of the
// result, so every CPU computes the same bits (FMA instructions where there are some).
void box_muller_16(float* values, float mean, float std);

// The same with libm's double functions.
void box_muller_16(double* values, double mean, double std);

namespace internal {
// The f32 version without vector instructions, for the test that both agree.
void box_muller_16_portable(float* values, float mean, float std);
}  // namespace internal

}  // namespace lockstep
