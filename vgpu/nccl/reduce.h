// Sums, products and their kind over ranks, in the order of a balanced tree: ((0+1)+(2+3))+….
#pragma once

#include <cstddef>
#include <vector>

#include "vgpu/include/nccl.h"

namespace vgpu {

std::size_t element_bytes(ncclDataType_t type);  // 0 for types that are not supported

// to[i] = from[0][i] op from[1][i] op …, 16-bit floats in f32 and rounded once; ncclAvg divides the
// sum by the number of ranks. `to` may be one of `from`.
void reduce_ranks(const std::vector<const void*>& from, void* to, std::size_t count,
                  ncclDataType_t type, ncclRedOp_t op);

}  // namespace vgpu
