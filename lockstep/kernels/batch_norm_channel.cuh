// What a thread of the batch norm kernels knows of its channels. Internal: device code.
#pragma once

#include "lockstep/kernels/batch_norm_cuda.h"
#include "lockstep/kernels/device_element.cuh"

namespace lockstep::kernels::cuda {

// BatchNormState as pointers; null: 0, 1, 1 and 0.
template <class C>
struct ChannelState {
  const C *mean, *inverse_std, *gamma, *beta;
  bool relu;

  explicit ChannelState(const BatchNormState& s) : relu(s.relu) {
    const auto pointer = [](const Tensor& t) {
      return t.defined() ? elements<const C>(t) : nullptr;
    };
    mean = pointer(s.mean);
    inverse_std = pointer(s.inverse_std);
    gamma = pointer(s.gamma);
    beta = pointer(s.beta);
  }
};

template <class C, int kN>
struct ChannelValues {
  C mean[kN], scale[kN], beta[kN];  // scale = gamma inverse_std

  __device__ __forceinline__ ChannelValues(const ChannelState<C>& s, std::uint64_t channel) {
#pragma unroll
    for (unsigned i = 0; i < kN; ++i) {
      mean[i] = s.mean != nullptr ? s.mean[channel + i] : C(0);
      const C gamma = s.gamma != nullptr ? s.gamma[channel + i] : C(1);
      scale[i] = s.inverse_std != nullptr ? gamma * s.inverse_std[channel + i] : gamma;
      beta[i] = s.beta != nullptr ? s.beta[channel + i] : C(0);
    }
  }

  // Rounded in one way everywhere: backward makes the ReLU's mask from it again.
  __device__ __forceinline__ C normalized(C x, int i) const {
    return fma(x - mean[i], scale[i], beta[i]);
  }
};

template <class C>
__device__ __forceinline__ C cut_off(C y, bool relu) {
  return relu && y < C(0) ? C(0) : y;  // keeps NaN
}

}  // namespace lockstep::kernels::cuda
