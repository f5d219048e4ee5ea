// How layer norm's kernels share rows among threads and read their parameters. Internal: device
// code.
#pragma once

#include <algorithm>

#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/row_parts.cuh"

namespace lockstep::kernels::cuda {

// A row to some lanes of a warp, or to a block where these have not enough registers.
inline constexpr unsigned kLayerNormThreads = 256;
inline RowShare layer_norm_share(std::int64_t length, int kN, std::size_t element_bytes) {
  RowShare share(length, kN, element_bytes);
  if (share.fits) return share;
  share.lanes = kLayerNormThreads;
  share.vectors = 1;
  while (static_cast<std::int64_t>(share.lanes) * share.vectors * kN < length &&
         share.vectors <= 32)
    share.vectors *= 2;
  share.fits = static_cast<std::size_t>(share.vectors * kN) * element_bytes <= RowShare::kMostBytes;
  return share;
}
inline unsigned layer_norm_threads(const RowShare& share) {
  return share.lanes > 32 ? share.lanes : RowShare::kThreads;
}

// Each of the row's threads gets the sum. All threads of the block must come.
template <class C>
__device__ __forceinline__ C sum_over_row(C value, unsigned lanes, C* scratch) {
  return lanes > 32 ? block_reduce(value, C(0), scratch, SumOf())
                    : group_reduce(value, lanes, SumOf());
}

// kN elements of a parameter, 16 bytes at a time; `otherwise` without a parameter.
template <int kN, class C, class W>
__device__ __forceinline__ void load_parameter(const W* parameter, std::uint64_t at, C otherwise,
                                               C (&value)[kN]) {
  constexpr int kPart = kN < kVectorElements<W> ? kN : kVectorElements<W>;
#pragma unroll
  for (int i = 0; i < kN; i += kPart) {
    AlignedVector<W, kPart> in;
    if (parameter) in = load_vector<kPart>(parameter + at + i);
#pragma unroll
    for (int k = 0; k < kPart; ++k)
      value[i + k] = parameter ? convert_element<C>(in.value[k]) : otherwise;
  }
}

// Weight and bias in one dtype, x's or that of the maths. Either may be undefined.
struct LayerNormParameters {
  Tensor weight, bias;
  bool wide = false;  // in the dtype of the maths, where that is not x's

  LayerNormParameters(const Tensor& w, const Tensor& b, DType dtype, DType compute) {
    const auto is_own = [&](const Tensor& t) { return !t.defined() || t.dtype() == dtype; };
    wide = !is_own(w) || !is_own(b);
    const auto prepared = [&](const Tensor& t) {
      return t.defined() ? cast(t, wide ? compute : dtype).contiguous() : t;
    };
    weight = prepared(w);
    bias = prepared(b);
  }
  template <class W>
  static const W* pointer(const Tensor& t) {
    return t.defined() ? elements<W>(t) : nullptr;
  }
};

// As has_vector_rows(), undefined tensors among them.
template <class T>
bool all_have_vector_rows(std::int64_t length, std::initializer_list<const Tensor*> tensors) {
  return has_vector_rows<T>(length) && std::ranges::all_of(tensors, [](const Tensor* t) {
           return !t->defined() || is_vector_aligned(t->data());
         });
}

// Calls f.template operator()<T, W, kN>() for x's dtype, the parameters' and the vectors' length.
template <class F>
void visit_layer_norm(DType dtype, bool wide, std::int64_t length,
                      std::initializer_list<const Tensor*> tensors, F&& f) {
  visit_device_floating(dtype, "layer_norm", [&]<class T>() {
    const auto with_parameters = [&]<class W>() {
      all_have_vector_rows<T>(length, tensors) ? f.template operator()<T, W, kVectorElements<T>>()
                                               : f.template operator()<T, W, 1>();
    };
    wide ? with_parameters.template operator()<Compute<T>>()
         : with_parameters.template operator()<T>();
  });
}

}  // namespace lockstep::kernels::cuda
