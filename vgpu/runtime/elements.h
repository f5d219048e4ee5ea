// Arrays of a type known at run time, for the stand-ins of libraries: values go in and out as A
// (float, or double for double).
#pragma once

#include <cstddef>

#include "vgpu/runtime/half_bits.h"

namespace vgpu {

enum class ElementType { kFloat, kDouble, kHalf, kBfloat16 };

inline std::size_t bytes_of(ElementType type) {
  return type == ElementType::kDouble ? 8 : type == ElementType::kFloat ? 4 : 2;
}

template <class A>
A load(const void* data, ElementType type, std::ptrdiff_t i) {
  switch (type) {
    case ElementType::kFloat:
      return static_cast<A>(static_cast<const float*>(data)[i]);
    case ElementType::kDouble:
      return static_cast<A>(static_cast<const double*>(data)[i]);
    case ElementType::kHalf:
      return static_cast<A>(widen(static_cast<const Half*>(data)[i]));
    case ElementType::kBfloat16:
      return static_cast<A>(widen(static_cast<const Bfloat16*>(data)[i]));
  }
  return A{};
}

template <class A>
void store(void* data, ElementType type, std::ptrdiff_t i, A value) {
  switch (type) {
    case ElementType::kFloat:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      break;
    case ElementType::kDouble:
      static_cast<double*>(data)[i] = static_cast<double>(value);
      break;
    case ElementType::kHalf:
      static_cast<Half*>(data)[i] = Narrow<Half>::from(static_cast<float>(value));
      break;
    case ElementType::kBfloat16:
      static_cast<Bfloat16*>(data)[i] = Narrow<Bfloat16>::from(static_cast<float>(value));
      break;
  }
}

}  // namespace vgpu
