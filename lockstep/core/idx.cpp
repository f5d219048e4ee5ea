#include "lockstep/core/idx.h"

#include <optional>

#include "lockstep/core/byte_order.h"
#include "lockstep/core/check.h"
#include "lockstep/core/gzip_reader.h"

namespace lockstep {
namespace {

DType element_type(const GzipReader& file, std::uint8_t code) {
  switch (code) {
    case 0x08:
      return kU8;
    case 0x0C:
      return kI32;
    case 0x0D:
      return kF32;
    case 0x0E:
      return kF64;
    case 0x09:
      file.damaged(2, "element type 0x09 (i8) is not supported");
    case 0x0B:
      file.damaged(2, "element type 0x0B (i16) is not supported");
    default:
      file.damaged(2, fmt::format("element type 0x{:02X} is unknown", code));
  }
}

}  // namespace

Tensor load_idx(const std::string& path) {
  GzipReader file(path);
  std::uint8_t magic[4];
  file.read(magic, sizeof magic);
  if (magic[0] != 0 || magic[1] != 0)
    file.damaged(0, fmt::format("not an IDX file: it starts with 0x{:02X} 0x{:02X}, not with zeros",
                                magic[0], magic[1]));
  const DType dtype = element_type(file, magic[2]);
  const int rank = magic[3];
  if (rank > kMaxRank)
    file.damaged(3, fmt::format("{} dimensions; at most {} are supported", rank, kMaxRank));
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    std::uint8_t size[4];
    file.read(size, sizeof size);
    shape.push_back(std::int64_t{size[0]} << 24 | size[1] << 16 | size[2] << 8 | size[3]);
  }
  const std::uint64_t data_start = 4 + 4 * static_cast<std::uint64_t>(rank);
  const std::optional<std::uint64_t> bytes = checked_bytes(shape, dtype);
  if (!bytes || *bytes > file.most_left())
    file.damaged(data_start,
                 fmt::format("shape {} of {} needs {} bytes; the file is too short", shape, dtype,
                             bytes ? std::to_string(*bytes) : "too many"));
  Tensor tensor = empty(shape, {.dtype = dtype});
  file.read(tensor.data(), tensor.nbytes());
  file.expect_end();
  reverse_bytes(tensor.data(), tensor.itemsize(), tensor.numel());
  return tensor;
}

}  // namespace lockstep
