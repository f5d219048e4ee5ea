#include "lockstep/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/tensor_transfer.h"

namespace lockstep {

Tensor::Tensor(std::shared_ptr<Storage> storage, Shape shape, Strides strides, std::int64_t offset,
               DType dtype)
    : storage_(std::move(storage)),
      shape_(shape),
      strides_(strides),
      offset_(offset),
      dtype_(dtype) {}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::kChannelsLast && dim() != 4) return false;
  if (numel() == 0) return true;
  const Strides wanted = contiguous_strides(shape_, format);
  for (int i = 0; i < dim(); ++i) {
    if (shape_[i] != 1 && strides_[i] != wanted[i]) return false;
  }
  return true;
}

MemoryFormat Tensor::suggested_format() const {
  return !is_contiguous() && is_contiguous(MemoryFormat::kChannelsLast)
             ? MemoryFormat::kChannelsLast
             : MemoryFormat::kContiguous;
}

bool Tensor::is_dense() const {
  if (numel() == 0) return true;
  std::int64_t expected = 1;
  bool used[kMaxRank] = {};
  for (int n = 0; n < dim(); ++n) {
    int next = -1;
    for (int i = 0; i < dim(); ++i) {
      if (used[i]) continue;
      if (shape_[i] == 1 || strides_[i] == expected) {
        next = i;
        break;
      }
    }
    if (next < 0) return false;
    used[next] = true;
    expected *= shape_[next];
  }
  return true;
}

void Tensor::wrong_access(DType wanted) const {
  if (!defined()) throw Error("data: the tensor is undefined");
  LOCKSTEP_CHECK(device().is_cpu(),
                 "data: the host asked for the elements of a tensor {} {} on {}; use to(kCpu)",
                 dtype_, shape_, device().str());
  throw Error(fmt::format("data: asked for {} elements of a {} tensor {}", wanted, dtype_, shape_));
}

Scalar Tensor::item_scalar() const {
  LOCKSTEP_CHECK(defined() && numel() == 1, "item: expected a tensor with one element but got {}",
                 defined() ? shape_.str() : "an undefined tensor");
  if (device().is_cuda()) return to(lockstep::kCpu).item_scalar();
  return visit_dtype(dtype_, [&]<class T>() -> Scalar {
    if constexpr (std::is_arithmetic_v<T>) return *data<T>();
    if constexpr (!std::is_arithmetic_v<T>) return static_cast<float>(*data<T>());
  });
}

namespace {

std::size_t checked_bytes(const Shape& shape, DType dtype, const char* op) {
  for (std::int64_t d : shape)
    LOCKSTEP_CHECK(d >= 0, "{}: a dimension of shape {} is negative", op, shape);
  std::size_t bytes = 0;
  LOCKSTEP_CHECK_AS(
      OutOfMemoryError,
      !__builtin_mul_overflow(static_cast<std::size_t>(shape.numel()), dtype_size(dtype), &bytes),
      "out of memory: shape {} of {} does not fit 64 bits of bytes", shape, dtype);
  return bytes;
}

template <class T>
T converted(double value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // Both ends are exact in double: the upper one is the power of two after the greatest value.
    constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
    constexpr double kBegin = static_cast<double>(std::numeric_limits<T>::min());
    const double whole = std::trunc(value);
    LOCKSTEP_CHECK(whole >= kBegin && whole < kEnd, "full: {} is not a value of {}", value,
                   kDTypeOf<T>);
    return static_cast<T>(whole);
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace

Tensor empty(const Shape& shape, const TensorOptions& options) {
  const std::size_t bytes = checked_bytes(shape, options.dtype, "empty");
  const MemoryFormat format = shape.rank() == 4 ? options.format : MemoryFormat::kContiguous;
  return {std::make_shared<Storage>(bytes, options.device), shape,
          contiguous_strides(shape, format), 0, options.dtype};
}

Tensor empty_like(const Tensor& like) { return empty_like(like, like.dtype()); }

Tensor empty_like(const Tensor& like, DType dtype) {
  if (!like.is_dense()) return empty(like.shape(), {dtype, like.device()});
  LOCKSTEP_CHECK(like.defined(), "empty_like: the tensor is undefined");
  const std::size_t bytes = checked_bytes(like.shape(), dtype, "empty_like");
  return {std::make_shared<Storage>(bytes, like.device()), like.shape(), like.strides(), 0, dtype};
}

Tensor zeros(const Shape& shape, const TensorOptions& options) {
  Tensor out = empty(shape, options);
  zero_(out);
  return out;
}

Tensor zeros_like(const Tensor& like) {
  Tensor out = empty_like(like);
  zero_(out);
  return out;
}

Tensor ones(const Shape& shape, const TensorOptions& options) { return full(shape, 1, options); }

Tensor full(const Shape& shape, double value, const TensorOptions& options) {
  Tensor out = empty(shape, options);
  visit_dtype(options.dtype, [&]<class T>() {
    const T element = converted<T>(value);
    if (options.device.is_cuda())
      detail::fill_on_device(out, &element);
    else
      std::fill_n(out.data<T>(), out.numel(), element);
  });
  return out;
}

Tensor arange(std::int64_t n, std::int64_t start, Device device) {
  LOCKSTEP_CHECK(n >= 0, "arange: expected a count of at least 0 but got {}", n);
  Tensor out = empty({n}, {.dtype = kI64});
  std::int64_t* p = out.data<std::int64_t>();
  for (std::int64_t i = 0; i < n; ++i) p[i] = start + i;
  return out.to(device);
}

template <class T>
Tensor tensor(std::span<const T> values, const Shape& shape) {
  LOCKSTEP_CHECK(static_cast<std::int64_t>(values.size()) == shape.numel(),
                 "tensor: {} values given for shape {}, which has {}", values.size(), shape,
                 shape.numel());
  Tensor out = empty(shape, {.dtype = kDTypeOf<T>});
  std::copy(values.begin(), values.end(), out.data<T>());
  return out;
}

template Tensor tensor(std::span<const float>, const Shape&);
template Tensor tensor(std::span<const double>, const Shape&);
template Tensor tensor(std::span<const Half>, const Shape&);
template Tensor tensor(std::span<const BFloat16>, const Shape&);
template Tensor tensor(std::span<const std::int32_t>, const Shape&);
template Tensor tensor(std::span<const std::int64_t>, const Shape&);
template Tensor tensor(std::span<const std::uint8_t>, const Shape&);
template Tensor tensor(std::span<const bool>, const Shape&);

Tensor from_blob(void* data, const Shape& shape, DType dtype, std::function<void(void*)> deleter) {
  const std::size_t bytes = checked_bytes(shape, dtype, "from_blob");
  LOCKSTEP_CHECK(data || bytes == 0, "from_blob: null data for shape {}", shape);
  if (!deleter) deleter = [](void*) {};
  return {std::make_shared<Storage>(data, bytes, std::move(deleter)), shape,
          contiguous_strides(shape), 0, dtype};
}

}  // namespace lockstep
