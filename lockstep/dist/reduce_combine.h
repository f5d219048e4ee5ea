// Two values to one, for reduce_kernel.h. As there, internal linkage and no library code.
#pragma once

#include <cstdint>

#include "lockstep/dist/reduce.h"

namespace lockstep::dist::detail {
namespace {

template <class T>
struct UnsignedOf {
  using Type = T;
};
template <>
struct UnsignedOf<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct UnsignedOf<std::int64_t> {
  using Type = std::uint64_t;
};

// Signed sums and products wrap: they are carried out unsigned. A NaN on either side stays.
template <ReduceOp kOp, class T>
struct Combine {
  static T apply(T a, T b) {
    using U = typename UnsignedOf<T>::Type;
    if constexpr (kOp == ReduceOp::kSum)
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    else if constexpr (kOp == ReduceOp::kProduct)
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    else if constexpr (kOp == ReduceOp::kMin)
      return (a < b || a != a) ? a : b;
    else
      return (a > b || a != a) ? a : b;
  }
};

}  // namespace
}  // namespace lockstep::dist::detail
