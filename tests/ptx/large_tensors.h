// Tensors of a million elements on the device.
#pragma once

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/cast.h"

namespace lockstep::testing {

inline constexpr std::int64_t kManyElements = std::int64_t{1} << 20;

// Small numbers of both signs.
inline Tensor large_tensor(DType dtype, const Shape& shape) {
  const Tensor x = empty(shape, {kF32});
  float* const data = x.data<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) data[i] = static_cast<float>(i * 37 % 101 - 50) / 16;
  return kernels::cast(x, dtype).to(cuda_device());
}

}  // namespace lockstep::testing
