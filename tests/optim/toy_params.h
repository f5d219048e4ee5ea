// Parameters and gradients for the optimizer tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "lockstep/autograd/variable.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/tensor.h"

namespace lockstep::testing {

// Different for every seed and index, of either sign, magnitudes 0.001 … 2.
inline Tensor wave(const Shape& shape, int seed, DType dtype = kF32) {
  Tensor t = empty(shape, {.dtype = dtype});
  visit_floating(dtype, "wave", [&]<class T>() {
    for (std::int64_t i = 0; i < t.numel(); ++i)
      t.data<T>()[i] =
          static_cast<T>(2.0 * std::sin(0.37 * static_cast<double>(i + 1) + 1.7 * seed));
  });
  return t;
}

inline Variable scalar_param(double value, DType dtype = kF32) {
  return Variable(full({1}, value, {.dtype = dtype}), true);
}

// Odd sizes, among them none and one.
inline std::vector<Variable> toy_params(DType dtype = kF32) {
  std::vector<Variable> params;
  for (const Shape& shape : {Shape{3, 5}, Shape{7}, Shape{0, 4}, Shape{}, Shape{2, 3, 5, 5}})
    params.emplace_back(wave(shape, static_cast<int>(params.size()), dtype), true);
  return params;
}

// Gradients of step `step`; parameter 1 has none at odd steps.
inline void set_toy_grads(std::vector<Variable>& params, int step) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    Variable& p = params[i];
    if (i == 1 && step % 2 == 1)
      p.set_grad({});
    else
      p.set_grad(wave(p.shape(), 100 * step + static_cast<int>(i), p.dtype()));
  }
}

inline std::vector<Tensor> values_of(const std::vector<Variable>& params) {
  std::vector<Tensor> values;
  for (const Variable& p : params) values.push_back(p.data().clone());
  return values;
}

}  // namespace lockstep::testing
