// Host memory that a CUDA device copies from and to by itself, so that the caller need not wait.
// Cached, because pinning is slow; a plain tensor of the CPU in every other way.
#pragma once

#include "lockstep/core/stream.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

// A contiguous tensor on the CPU, contents undefined. In a build or on a machine without CUDA it
// lies in ordinary memory.
Tensor empty_pinned(const Shape& shape, DType dtype = kF32);
// A pinned copy; this tensor itself where it is pinned.
Tensor pin_memory(const Tensor& x);
bool is_pinned(const Tensor& x);

namespace detail {
// Work that is in `stream` by now uses the memory at `data`, if that is pinned: freed, it is not
// given out before that is done.
void record_pinned_stream(const void* data, const Stream& stream);
// Null where there is no device.
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* data) noexcept;
bool is_pinned_memory(const void* data);
}  // namespace detail

}  // namespace lockstep
