// What the readers of binary formats share: byte order, sizes that may overflow, bool bytes.
// Internal to core.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/core/file_reader.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

// Turns each of `count` elements of `itemsize` bytes end for end, in place.
void reverse_bytes(void* data, std::size_t itemsize, std::int64_t count);

// Bytes of a tensor whose dimensions (none negative) come from a file; nothing if that or a stride
// leaves 63 bits.
std::optional<std::uint64_t> checked_bytes(const Shape& shape, DType dtype);

// Throws file.damaged where a byte of the tensor, read from `offset` on, is neither 0 nor 1.
void check_bools(const FileReader& file, std::uint64_t offset, const Tensor& tensor);

}  // namespace lockstep
