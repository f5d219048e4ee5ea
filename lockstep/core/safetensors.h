// Named tensors in a file, in Hugging Face's safetensors format, which Python reads and writes.
//
// Layout: 8 bytes header length (little-endian), JSON header, then the tensors' bytes, row-major,
// little-endian. Source: https://github.com/huggingface/safetensors#format.
#pragma once

#include <map>
#include <string>

#include "lockstep/core/tensor.h"

namespace lockstep {

using TensorMap = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

struct SafetensorsFile {
  TensorMap tensors;
  Metadata metadata;  // the header's "__metadata__"
};

// Reads all tensors. Everything in the file is checked before memory is taken: truncation, excess
// bytes, bad JSON, duplicate or unknown keys, ranges that overlap, leave gaps, leave the file or
// disagree with shape and dtype, bools other than 0 and 1. Each is an Error that names file, byte
// offset and reason; a dtype that Lockstep lacks (F8, I8, I16, U16, U32, U64, …) is named.
TensorMap load_safetensors(const std::string& path);
SafetensorsFile load_safetensors_with_metadata(const std::string& path);

// Replaces `path` in one step (see atomic_file.h). Order in the file: larger elements first, then
// by name (bytewise), so that each tensor is aligned to its element size; the header is padded with
// blanks to a multiple of 8. Any layout is written in row-major order; tensors that share storage
// are written once each. The same contents give the same bytes.
void save_safetensors(const std::string& path, const TensorMap& tensors,
                      const Metadata& metadata = {});

}  // namespace lockstep
