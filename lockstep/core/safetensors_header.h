// The JSON header of a safetensors file: text to entries and back. Internal to core.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"

namespace lockstep {

// One tensor: bytes begin..end, counted from the end of the header.
struct SafetensorsEntry {
  std::string name;
  DType dtype = kF32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

// Parses and checks a header followed by `data_bytes` bytes. Throws Error with the reason; where
// the reason is bad JSON it holds the position in the file (the header starts at byte 8).
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes);

// The header's text, padded to a multiple of 8. Throws Error for a name that is not UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace lockstep
