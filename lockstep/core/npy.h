// One tensor in a file, in NumPy's .npy format.
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#pragma once

#include <string>

#include "lockstep/core/tensor.h"

namespace lockstep {

// Reads format versions 1 to 3, C and Fortran order, little- and big-endian, into a row-major
// tensor in host order. Dtypes: <f4 <f8 <f2 <i4 <i8 |u1 |b1; others are an Error that names them.
// A damaged, truncated or too long file is an Error with byte offset and reason.
Tensor load_npy(const std::string& path);

// Replaces `path` in one step (atomic_file.h) with a version 1 file in C order, whatever the
// tensor's layout. bf16 has no NumPy type: Error.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace lockstep
