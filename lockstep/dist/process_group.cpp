#include "lockstep/dist/process_group.h"

#include <cstring>

#include "lockstep/core/check.h"

namespace lockstep::dist {

std::string_view reduce_op_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
  }
  return "?";
}

std::shared_ptr<Storage> ProcessGroup::allocate(std::size_t bytes) {
  auto storage = std::make_shared<Storage>(bytes);
  if (bytes > 0) std::memset(storage->data(), 0, bytes);
  return storage;
}

Tensor ProcessGroup::allocate_tensor(const Shape& shape, DType dtype) {
  const Strides strides = contiguous_strides(shape);
  auto storage = allocate(static_cast<std::size_t>(shape.numel()) * dtype_size(dtype));
  return Tensor(std::move(storage), shape, strides, 0, dtype);
}

Span span_of(const Tensor& tensor) {
  LOCKSTEP_CHECK(tensor.defined(), "span_of: the tensor is undefined");
  LOCKSTEP_CHECK(tensor.is_dense(),
                 "span_of: a tensor of shape {} whose elements do not fill one block of memory; "
                 "call contiguous() first",
                 tensor.shape());
  return {tensor.data(), tensor.numel(), tensor.dtype(), tensor.device()};
}

}  // namespace lockstep::dist
