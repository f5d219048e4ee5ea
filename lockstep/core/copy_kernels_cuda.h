// Copies and fills by kernels, of elements that are only bits. Internal.
#pragma once

#include "lockstep/core/copy_plan.h"

struct CUstream_st;

namespace lockstep::cuda {

// Both on the stream's device, whatever their layouts; `unit` is an element's size: 1, 2, 4 or 8.
void copy_strided(const CopyPlan& plan, void* dst, const void* src, int unit, CUstream_st* stream);
// Every element of `plan`'s dst layout = the `unit` bytes of `bits`.
void fill_strided(const CopyPlan& plan, void* dst, std::uint64_t bits, int unit,
                  CUstream_st* stream);

}  // namespace lockstep::cuda
