#include "lockstep/core/byte_order.h"

#include <algorithm>
#include <bit>

#include "lockstep/core/check.h"

namespace lockstep {

static_assert(std::endian::native == std::endian::little,
              "the file formats are read and written for little-endian hosts");

void reverse_bytes(void* data, std::size_t itemsize, std::int64_t count) {
  auto* bytes = static_cast<std::uint8_t*>(data);
  for (std::int64_t i = 0; i < count; ++i, bytes += itemsize) std::reverse(bytes, bytes + itemsize);
}

std::optional<std::uint64_t> checked_bytes(const Shape& shape, DType dtype) {
  // Empty axes count as 1 here, so that strides cannot overflow either.
  auto bytes = static_cast<std::int64_t>(dtype_size(dtype));
  bool none = false;
  for (const std::int64_t size : shape) {
    none = none || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) return {};
  }
  return none ? 0 : static_cast<std::uint64_t>(bytes);
}

void check_bools(const FileReader& file, std::uint64_t offset, const Tensor& tensor) {
  const auto* bytes = static_cast<const std::uint8_t*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    if (bytes[i] > 1)
      file.damaged(offset + static_cast<std::uint64_t>(i),
                   fmt::format("a bool is {}, neither 0 nor 1", bytes[i]));
}

}  // namespace lockstep
