// Reads the IDX files that MNIST comes in. Source: http://yann.lecun.com/exdb/mnist/ ("file
// formats"): bytes 0 0, element type, number of dimensions; dimensions as big-endian u32; elements
// big-endian, row-major.
#pragma once

#include <string>

#include "lockstep/core/tensor.h"

namespace lockstep {

// Raw or gzip. Element types 0x08 (u8), 0x0C (i32), 0x0D (f32), 0x0E (f64); others are an Error
// that names them. Wrong magic, a size that disagrees with the dimensions, truncation and gzip
// damage are Errors with file, byte offset and reason; no memory is taken beyond what the file can
// hold.
Tensor load_idx(const std::string& path);

}  // namespace lockstep
