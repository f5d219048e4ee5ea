// Spans: what a collective works on. Counts are elements, never bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "lockstep/core/dtype.h"
#include "lockstep/core/tensor.h"

namespace lockstep::dist {

// `count` elements of `dtype` in the memory of `device`, one after the other. On the CPU `data`
// need not be aligned to the element; it may be null where count is 0. The memory must live until
// the Work that uses it is done.
struct Span {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::kF32;
  Device device = kCpu;

  std::size_t bytes() const { return static_cast<std::size_t>(count) * dtype_size(dtype); }
};

struct ConstSpan {
  const void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::kF32;
  Device device = kCpu;

  ConstSpan() = default;
  ConstSpan(const void* data, std::int64_t count, DType dtype, Device device = kCpu)
      : data(data), count(count), dtype(dtype), device(device) {}
  ConstSpan(const Span& span)  // NOLINT: a Span is a ConstSpan
      : data(span.data), count(span.count), dtype(span.dtype), device(span.device) {}

  std::size_t bytes() const { return static_cast<std::size_t>(count) * dtype_size(dtype); }
};

template <class T>
Span span_of(T* data, std::int64_t count) {
  return {data, count, kDTypeOf<T>, kCpu};
}
template <class T>
ConstSpan span_of(const T* data, std::int64_t count) {
  return {data, count, kDTypeOf<T>};
}
// Anything with data() and size(): std::vector, std::array, std::span.
template <class Range>
requires requires(Range& r) { *r.data(), r.size(); }
auto span_of(Range& values) {
  return span_of(values.data(), static_cast<std::int64_t>(values.size()));
}
// The memory block of a dense tensor (any order of axes); throws Error for one that is not dense.
Span span_of(const Tensor& tensor);

}  // namespace lockstep::dist
