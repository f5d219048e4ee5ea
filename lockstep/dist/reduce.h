// The arithmetic of reductions: many inputs to one result, in tree order, written to many outputs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lockstep/core/dtype.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::dist {

// outputs[j][i] = the reduction over k of inputs[k][i] in the order of reduction_tree.h, for all j
// and 0 <= i < count. Half types are summed in f32 and rounded once, integers wrap, bool is 0 or 1.
// No pointer needs to be aligned. An output may be exactly an input, or else overlap none.
// Runs on the caller's thread with the widest vectors of the machine; the bits do not depend on
// them. At most kMaxReduceInputs inputs.
inline constexpr int kMaxReduceInputs = 1 << 16;
void reduce_tree(ReduceOp op, DType dtype, std::span<const void* const> inputs,
                 std::span<void* const> outputs, std::int64_t count);

// "baseline", "avx2" or "avx512": what reduce_tree runs with here.
std::string_view reduce_instruction_set();

namespace detail {

using ReduceKernel = void (*)(ReduceOp op, DType dtype, const void* const* inputs, int n,
                              void* const* outputs, int m, std::int64_t count);
void reduce_baseline(ReduceOp op, DType dtype, const void* const* inputs, int n,
                     void* const* outputs, int m, std::int64_t count);
void reduce_avx2(ReduceOp op, DType dtype, const void* const* inputs, int n, void* const* outputs,
                 int m, std::int64_t count);
void reduce_avx512(ReduceOp op, DType dtype, const void* const* inputs, int n, void* const* outputs,
                   int m, std::int64_t count);

}  // namespace detail
}  // namespace lockstep::dist
