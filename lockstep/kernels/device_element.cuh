// Elements in device memory: their types, and 16-byte loads and stores of several. Internal.
#pragma once

#include <cuda_runtime.h>

#include "lockstep/core/error.h"
#include "lockstep/core/tensor_handle.h"
#include "lockstep/kernels/convert_element.h"
#include "lockstep/kernels/vector_access.h"

namespace lockstep::kernels::cuda {

// What sums and maths over T are carried out in: f32 for the half types.
template <class T>
struct ComputeOf {
  using Type = float;
};
template <>
struct ComputeOf<double> {
  using Type = double;
};
template <class T>
using Compute = typename ComputeOf<T>::Type;

// N elements that are loaded and stored at once: up to kVectorBytes.
template <class T, int N>
struct alignas(sizeof(T) * N) AlignedVector {
  T value[N];
};
template <class T>
inline constexpr int kVectorElements = static_cast<int>(kVectorBytes / sizeof(T));

template <int N, class T>
__device__ __forceinline__ AlignedVector<T, N> load_vector(const T* from) {
  return *reinterpret_cast<const AlignedVector<T, N>*>(from);
}
template <int N, class T>
__device__ __forceinline__ void store_vector(T* to, const AlignedVector<T, N>& v) {
  *reinterpret_cast<AlignedVector<T, N>*>(to) = v;
}

// The elements of a tensor on a device; T is F16Bits and BF16Bits for the half types.
template <class T>
T* elements(const Tensor& x) {
  return static_cast<T*>(x.data());
}

// Calls f.template operator()<T>() with float, double, F16Bits or BF16Bits.
template <class F>
decltype(auto) visit_device_floating(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF64:
      return f.template operator()<double>();
    case DType::kF16:
      return f.template operator()<F16Bits>();
    case DType::kBF16:
      return f.template operator()<BF16Bits>();
    default:
      throw Error(std::string(op) + ": expected a floating dtype (f32, f64, f16, bf16) but got " +
                  std::string(dtype_name(dtype)));
  }
}

// Element i of an array whose dtype is known only at run time.
template <class C>
__device__ __forceinline__ C load_element(const void* from, std::int64_t i, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return convert_element<C>(static_cast<const float*>(from)[i]);
    case DType::kF64:
      return convert_element<C>(static_cast<const double*>(from)[i]);
    case DType::kF16:
      return convert_element<C>(static_cast<const F16Bits*>(from)[i]);
    case DType::kBF16:
      return convert_element<C>(static_cast<const BF16Bits*>(from)[i]);
    case DType::kI32:
      return convert_element<C>(static_cast<const std::int32_t*>(from)[i]);
    case DType::kI64:
      return convert_element<C>(static_cast<const std::int64_t*>(from)[i]);
    case DType::kU8:
      return convert_element<C>(static_cast<const std::uint8_t*>(from)[i]);
    case DType::kBool:
      return convert_element<C>(static_cast<const bool*>(from)[i]);
  }
  return C(0);
}

template <class C>
__device__ __forceinline__ void store_element(void* to, std::int64_t i, DType dtype, C value) {
  switch (dtype) {
    case DType::kF32:
      static_cast<float*>(to)[i] = convert_element<float>(value);
      break;
    case DType::kF64:
      static_cast<double*>(to)[i] = convert_element<double>(value);
      break;
    case DType::kF16:
      static_cast<F16Bits*>(to)[i] = convert_element<F16Bits>(value);
      break;
    case DType::kBF16:
      static_cast<BF16Bits*>(to)[i] = convert_element<BF16Bits>(value);
      break;
    case DType::kI32:
      static_cast<std::int32_t*>(to)[i] = convert_element<std::int32_t>(value);
      break;
    case DType::kI64:
      static_cast<std::int64_t*>(to)[i] = convert_element<std::int64_t>(value);
      break;
    case DType::kU8:
      static_cast<std::uint8_t*>(to)[i] = convert_element<std::uint8_t>(value);
      break;
    case DType::kBool:
      static_cast<bool*>(to)[i] = convert_element<bool>(value);
      break;
  }
}

}  // namespace lockstep::kernels::cuda
