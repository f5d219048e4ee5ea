// One run of elements from one dtype to another. Internal: casts, copies and the buffers of the
// element-wise engine use it.
//
// Rounding: to nearest, ties to even, once (f64 and i64 to a half type do not pass through a
// rounded f32). Floating to integer: towards zero, saturating at the ends of the range, NaN to 0.
// Integer to a narrower integer: the low bits. Anything to bool: != 0 (NaN is true).
#pragma once

#include <cstdint>

#include "lockstep/core/dtype.h"

namespace lockstep::kernels {

// dst[i * dst_stride] = src[i * src_stride] for i < n; strides in elements of the own type.
using ConvertRun = void (*)(const void* src, std::int64_t src_stride, void* dst,
                            std::int64_t dst_stride, std::int64_t n);

ConvertRun convert_run(DType from, DType to);

}  // namespace lockstep::kernels
