// Tensors of random numbers: torch's numbers for the same seed, where the tensor is contiguous.
//
// Values are drawn one after another and given to the elements in row-major order of the logical
// shape, whatever the layout, so a channels-last tensor gets the values of a contiguous one.
#pragma once

#include "lockstep/core/generator.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

// In place; each bumps the tensor's version. Errors: an undefined tensor or a dtype that is not
// floating (f32, f64, f16, bf16), from > to, std < 0, p outside [0, 1].

// Uniform in [from, to). f64 takes 53 random bits, the rest 24 (half types: f32, then rounded; a
// value that rounds up to `to` becomes `from`, as in PyTorch 2.15).
void uniform_(const Tensor& tensor, double from, double to, Generator& generator);

// Normal. From 16 elements on, blocks of 16: Box-Muller over pairs (i, i+8) of a block of uniform
// numbers, the last 16 elements drawn again where 16 does not divide the count (PyTorch's order).
// Fewer elements: Generator::normal one by one. Maths in f32 for f32 and half types, else in f64.
// f32 has the bits of PyTorch's AVX2 path on every CPU; f64 and short tensors depend on libm.
void normal_(const Tensor& tensor, double mean, double std, Generator& generator);

// 1 with probability p, else 0.
void bernoulli_(const Tensor& tensor, double p, Generator& generator);

// New tensors.
Tensor rand(const Shape& shape, Generator& generator, const TensorOptions& options = {});
Tensor randn(const Shape& shape, Generator& generator, const TensorOptions& options = {});
// Integers in [low, high), i64.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Generator& generator);
// A permutation of 0 .. n-1, i64.
Tensor randperm(std::int64_t n, Generator& generator);

}  // namespace lockstep
