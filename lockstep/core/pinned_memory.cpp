#include "lockstep/core/pinned_memory.h"

#include "lockstep/core/check.h"

namespace lockstep {

Tensor empty_pinned(const Shape& shape, DType dtype) {
  for (std::int64_t d : shape)
    LOCKSTEP_CHECK(d >= 0, "empty_pinned: a dimension of shape {} is negative", shape);
  std::size_t bytes = 0;
  LOCKSTEP_CHECK_AS(
      OutOfMemoryError,
      !__builtin_mul_overflow(static_cast<std::size_t>(shape.numel()), dtype_size(dtype), &bytes),
      "out of memory: shape {} of {} does not fit 64 bits of bytes", shape, dtype);
  if (bytes == 0 || cuda_device_count() == 0) return empty(shape, {.dtype = dtype});
  return from_blob(detail::allocate_pinned(bytes), shape, dtype, &detail::free_pinned);
}

Tensor pin_memory(const Tensor& x) {
  LOCKSTEP_CHECK(x.device().is_cpu(), "pin_memory: expected a tensor on the CPU but got one on {}",
                 x.device().str());
  if (is_pinned(x)) return x;
  Tensor pinned = empty_pinned(x.shape(), x.dtype());
  copy_elements(pinned, x);
  return pinned;
}

bool is_pinned(const Tensor& x) {
  return x.defined() && x.device().is_cpu() && detail::is_pinned_memory(x.storage()->data());
}

}  // namespace lockstep
