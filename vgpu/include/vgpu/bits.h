// Values as bits, for what lanes exchange and for atomics.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace vgpu {

template <class T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace vgpu
