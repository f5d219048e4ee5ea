// Where products of matrices go, and what is done to them on the way. Internal: device code.
#pragma once

#include "lockstep/kernels/device_element.cuh"

namespace lockstep::kernels::cuda {

// Rows of T: =, or += with `accumulate`; a bias to each column, and max(0, c) after it.
template <class T>
struct MatrixOut {
  T* data = nullptr;
  std::uint64_t rows = 0, columns = 0;
  std::uint64_t row_stride = 0, batch_stride = 0, split_stride = 0;  // elements
  const T* bias = nullptr;
  std::uint64_t bias_batch_stride = 0;
  bool accumulate = false, relu = false;
  bool vectors = false;  // rows begin at multiples of 4 elements

  __device__ __forceinline__ void select(unsigned batch, unsigned split) {
    data += batch * batch_stride + split * split_stride;
    if (bias != nullptr) bias += batch * bias_batch_stride;
  }

  template <class C>
  __device__ __forceinline__ void store(std::uint64_t row, std::uint64_t column,
                                        const C* quad) const {
    if (row >= rows || column >= columns) return;
    T* const at = data + row * row_stride + column;
    if (vectors && columns - column >= 4) {
      AlignedVector<T, 4> out;
      if (accumulate) out = load_vector<4>(at);
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) out.value[i] = finish(quad[i], out.value[i], column + i);
      store_vector(at, out);
      return;
    }
    for (unsigned i = 0; i < 4; ++i)
      if (column + i < columns) at[i] = finish(quad[i], accumulate ? at[i] : T(), column + i);
  }

 private:
  template <class C>
  __device__ __forceinline__ T finish(C sum, T before, std::uint64_t column) const {
    if (accumulate) sum += convert_element<C>(before);
    if (bias != nullptr) sum += convert_element<C>(bias[column]);
    if (relu) sum = sum < C(0) ? C(0) : sum;  // keeps NaN
    return convert_element<T>(sum);
  }
};

}  // namespace lockstep::kernels::cuda
