// Where an element of a strided tensor lies. Internal: device code.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace lockstep::kernels::cuda {

// Where element `index` lies, axes from the innermost on.
__device__ __forceinline__ std::int64_t strided_offset(const std::uint64_t* size,
                                                       const std::int64_t* stride, int rank,
                                                       std::uint64_t index) {
  std::int64_t offset = 0;
  for (int axis = 0; axis + 1 < rank; ++axis) {
    const std::uint64_t n = size[axis];
    const std::uint64_t next = (index | n) >> 32 == 0
                                   ? static_cast<unsigned>(index) / static_cast<unsigned>(n)
                                   : index / n;  // 64 bits cost four times more
    offset += static_cast<std::int64_t>(index - next * n) * stride[axis];
    index = next;
  }
  return offset + static_cast<std::int64_t>(index) * stride[rank - 1];
}

}  // namespace lockstep::kernels::cuda
