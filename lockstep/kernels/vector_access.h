// Whether a CUDA kernel may read and write memory 16 bytes at a time, the most that one instruction
// moves. Internal.
#pragma once

#include <cstdint>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels::cuda {

inline constexpr std::size_t kVectorBytes = 16;

inline bool is_vector_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kVectorBytes == 0;
}

// Rows of `length` elements of T, one after the other in each of the tensors.
template <class T, class... Tensors>
bool has_vector_rows(std::int64_t length, const Tensors&... tensors) {
  return length % static_cast<std::int64_t>(kVectorBytes / sizeof(T)) == 0 &&
         (is_vector_aligned(tensors.data()) && ...);
}

}  // namespace lockstep::kernels::cuda
