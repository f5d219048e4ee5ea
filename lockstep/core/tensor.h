// Tensors: the class (core/tensor_handle.h), and the functions that make and fill them.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "lockstep/core/tensor_handle.h"

namespace lockstep {

struct TensorOptions {
  DType dtype = kF32;
  Device device = lockstep::kCpu;
  MemoryFormat format = MemoryFormat::kContiguous;
};

// New tensors. empty() leaves the contents undefined.
Tensor empty(const Shape& shape, const TensorOptions& options = {});
Tensor empty_like(const Tensor& like);  // shape, dtype, device and, if dense, strides
Tensor empty_like(const Tensor& like, DType dtype);
Tensor zeros(const Shape& shape, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& like);
Tensor ones(const Shape& shape, const TensorOptions& options = {});
// `value` is converted to the dtype.
Tensor full(const Shape& shape, double value, const TensorOptions& options = {});
// start, start+1, … (i64).
Tensor arange(std::int64_t n, std::int64_t start = 0, Device device = lockstep::kCpu);

// Copies `values` (row-major) into a new tensor of this shape; throws Error if the counts differ.
template <class T>
Tensor tensor(std::span<const T> values, const Shape& shape);
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape) {
  return tensor(std::span<const T>(values), shape);
}
template <class T>
Tensor tensor(const std::vector<T>& values) {
  return tensor(values, Shape{static_cast<std::int64_t>(values.size())});
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const Shape& shape) {
  return tensor(std::span<const T>(values.begin(), values.size()), shape);
}
template <class T>
Tensor tensor(std::initializer_list<T> values) {
  return tensor(values, Shape{static_cast<std::int64_t>(values.size())});
}

// A view of the caller's memory, which must outlive all its uses; with a deleter, which runs
// exactly once after the last use, it need not.
Tensor from_blob(void* data, const Shape& shape, DType dtype,
                 std::function<void(void*)> deleter = {});
template <class T>
Tensor from_blob(std::vector<T>& values, const Shape& shape) {
  return from_blob(values.data(), shape, kDTypeOf<T>);
}
template <class T>
Tensor from_blob(std::vector<T>&& values, const Shape& shape) = delete;  // would dangle

// dst = src, elements of one dtype in any layouts of one shape, on any devices. Bumps dst's
// version. Between two devices: with `non_blocking` the caller does not wait where host memory is
// pinned (pinned_memory.h); it must not touch either tensor before the current stream is done.
void copy_elements(const Tensor& dst, const Tensor& src, bool non_blocking = false);
// Sets all bytes to 0, whatever the layout. Bumps the version.
void zero_(const Tensor& tensor);

}  // namespace lockstep
