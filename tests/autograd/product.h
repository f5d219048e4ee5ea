// The smallest differentiable operation, for tests of the graph itself.
#pragma once

#include "lockstep/autograd/record.h"

namespace lockstep::testing {

inline Tensor multiply(const Tensor& a, const Tensor& b) {
  Tensor y = empty_like(a);
  const std::int64_t n = a.numel();
  for (std::int64_t i = 0; i < n; ++i) y.data<float>()[i] = a.data<float>()[i] * b.data<float>()[i];
  return y;
}

// y = a * b for f32 tensors of one shape.
inline Variable product(const Variable& a, const Variable& b) {
  return record("product", multiply(a.data(), b.data()), inputs(a, b), [&](const Tensor&) {
    return [a = SavedTensor(a.data()), b = SavedTensor(b.data())](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return multiply(dy, b.get()); });
      dx.set(1, [&] { return multiply(dy, a.get()); });
    };
  });
}

// a *= c, in place, for a constant c.
inline void scale_(Variable& a, float c) {
  record_in_place(
      "scale_", a, inputs(a),
      [&](const Tensor& x) {
        for (std::int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] *= c;
      },
      [&] {
        return [c](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] { return multiply(dy, full(dy.shape(), c)); });
        };
      });
}

inline Variable view_of(const Variable& a) {
  return record("view", a.data().view({a.numel()}), inputs(a), [&](const Tensor&) {
    return [shape = a.shape()](const Tensor& dy, Gradients& dx) {
      dx.set(0, [&] { return dy.view(shape); });
    };
  });
}

inline Variable leaf(float value, bool requires_grad = true) {
  return {full({1}, value), requires_grad};
}

inline float grad_of(const Variable& v) { return v.grad().item<float>(); }

}  // namespace lockstep::testing
