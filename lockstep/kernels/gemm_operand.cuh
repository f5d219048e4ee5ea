// Loaders of gemm_tile.cuh for matrices of any strides. Internal: device code.
#pragma once

#include "lockstep/kernels/gemm_tile.cuh"

namespace lockstep::kernels::cuda {

// Element (outer, k) of an operand.
template <class T, bool along_k>
struct StridedOperand {
  static constexpr bool kAlongK = along_k;
  const T* data = nullptr;
  std::uint64_t outer = 0, k = 0;  // how many
  std::int64_t outer_stride = 0, k_stride = 0, batch_stride = 0;
  bool vectors = false;  // quads are 4 elements in a row, at multiples of 4 elements

  struct Slot {
    const T* at = nullptr;
    unsigned inside = 0;  // how many of the quad's outer elements exist
  };

  __device__ __forceinline__ void select(unsigned batch) {
    data += static_cast<std::int64_t>(batch) * batch_stride;
  }

  __device__ __forceinline__ Slot slot(std::uint64_t first) const {
    const std::uint64_t left = first < outer ? outer - first : 0;
    return {data + static_cast<std::int64_t>(first) * outer_stride,
            static_cast<unsigned>(left < 4 ? left : 4)};
  }

  __device__ __forceinline__ Quad<T> load(const Slot& slot, std::uint64_t first_k) const {
    Quad<T> quad = {};
    if (slot.inside == 0 || first_k >= k) return quad;
    const T* const at = slot.at + static_cast<std::int64_t>(first_k) * k_stride;
    if constexpr (along_k) {
      if (vectors && k - first_k >= 4) return load_vector<4>(at);
#pragma unroll
      for (unsigned i = 0; i < 4; ++i)
        if (first_k + i < k) quad.value[i] = at[static_cast<std::int64_t>(i) * k_stride];
    } else {
      if (vectors && slot.inside == 4) return load_vector<4>(at);
#pragma unroll
      for (unsigned i = 0; i < 4; ++i)
        if (i < slot.inside) quad.value[i] = at[static_cast<std::int64_t>(i) * outer_stride];
    }
    return quad;
  }
};

}  // namespace lockstep::kernels::cuda
