// Element types: names, sizes, and the map between DType and C++ types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Host scalars for the half types are Eigen's; lockstep/core/half.h brings their definitions where
// values are computed, so that this header stays light.
namespace Eigen {
struct half;
struct bfloat16;
}  // namespace Eigen

namespace lockstep {

using Half = Eigen::half;
using BFloat16 = Eigen::bfloat16;

enum class DType : std::uint8_t { kF32, kF64, kF16, kBF16, kI32, kI64, kU8, kBool };

inline constexpr DType kF32 = DType::kF32;
inline constexpr DType kF64 = DType::kF64;
inline constexpr DType kF16 = DType::kF16;
inline constexpr DType kBF16 = DType::kBF16;
inline constexpr DType kI32 = DType::kI32;
inline constexpr DType kI64 = DType::kI64;
inline constexpr DType kU8 = DType::kU8;
inline constexpr DType kBool = DType::kBool;

// Bytes of one element.
constexpr std::size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kU8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

// "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool".
constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kU8:
      return "u8";
    case DType::kBool:
      return "bool";
  }
  return "?";
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::kF64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType kValue = DType::kF16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType kValue = DType::kBF16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType kValue = DType::kI32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType kValue = DType::kI64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType kValue = DType::kU8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType kValue = DType::kBool;
};
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::kValue;

// Sums over T are carried out in Accumulator<T>: f32 for the half types, i64 for integers.
template <class T>
struct AccumulatorOf {
  using Type = float;
};
template <>
struct AccumulatorOf<double> {
  using Type = double;
};
template <>
struct AccumulatorOf<std::int32_t> {
  using Type = std::int64_t;
};
template <>
struct AccumulatorOf<std::int64_t> {
  using Type = std::int64_t;
};
template <>
struct AccumulatorOf<std::uint8_t> {
  using Type = std::int64_t;
};
template <>
struct AccumulatorOf<bool> {
  using Type = std::int64_t;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::Type;

}  // namespace lockstep
