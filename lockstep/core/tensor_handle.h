// The class Tensor: a handle on shared storage. No gradients here; autograd's Variable adds them.
// Include core/tensor.h, which has the functions that make tensors too.
#pragma once

#include <memory>
#include <span>

#include "lockstep/core/device.h"
#include "lockstep/core/dtype.h"
#include "lockstep/core/scalar.h"
#include "lockstep/core/shape.h"
#include "lockstep/core/storage.h"

namespace lockstep {

// Copying a Tensor copies the handle. A view shares its storage (and so its version counter) with
// the tensor it came from. Offsets and strides count elements and are 64-bit.
class Tensor {
 public:
  Tensor() = default;  // undefined
  Tensor(std::shared_ptr<Storage> storage, Shape shape, Strides strides, std::int64_t offset,
         DType dtype);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  std::int64_t offset() const { return offset_; }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device() : lockstep::kCpu; }
  int dim() const { return shape_.rank(); }
  std::int64_t size(std::int64_t axis) const { return shape_[normalize_axis(axis, dim(), "size")]; }
  std::int64_t numel() const { return shape_.numel(); }
  std::size_t itemsize() const { return dtype_size(dtype_); }
  std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * itemsize(); }
  const std::shared_ptr<Storage>& storage() const { return storage_; }

  bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  // The layout that a result of the same shape should have: channels-last where this tensor is a
  // 4-D channels-last one and not also plainly contiguous (C = 1 or H = W = 1 count as both).
  MemoryFormat suggested_format() const;
  // No two elements share memory and the elements fill one block (in any order of axes).
  bool is_dense() const;

  // First element. A handle is a reference: constness of the handle is not that of the elements.
  void* data() const {
    return storage_ ? static_cast<char*>(storage_->data()) +
                          offset_ * static_cast<std::int64_t>(itemsize())
                    : nullptr;
  }
  // The same, typed, for the host to read: throws Error if T is not the tensor's dtype, and for a
  // tensor on another device than the CPU.
  template <class T>
  T* data() const {
    if (dtype_ != kDTypeOf<T> || !device().is_cpu()) [[unlikely]]
      wrong_access(kDTypeOf<T>);
    return static_cast<T*>(data());
  }

  // The one element of a tensor with numel() 1 as a T, by Scalar's rules: exact for whole numbers,
  // Error where T can't hold it. Of a tensor on a CUDA device: waits for the current stream.
  template <class T = double>
  T item() const {
    return item_scalar().to<T>();
  }

  // Views. One dimension of view() may be -1; view() throws Error where strides forbid it.
  Tensor view(const Shape& shape) const;
  Tensor permute(std::span<const int> axes) const;
  Tensor permute(std::initializer_list<int> axes) const {
    return permute(std::span<const int>(axes.begin(), axes.size()));
  }
  Tensor transpose(std::int64_t a, std::int64_t b) const;
  Tensor t() const;  // of a matrix
  // Elements start, start+step, … < end of one axis; negative start and end count from the back.
  Tensor slice(std::int64_t axis, std::int64_t start, std::int64_t end,
               std::int64_t step = 1) const;
  Tensor select(std::int64_t axis, std::int64_t index) const;
  Tensor squeeze(std::int64_t axis) const;
  Tensor unsqueeze(std::int64_t axis) const;
  // Size-1 axes repeated with stride 0, new axes in front.
  Tensor expand(const Shape& shape) const;
  Tensor as_strided(const Shape& shape, const Strides& strides, std::int64_t offset) const;

  // Copies. contiguous() returns this tensor itself where it already has the format.
  Tensor clone() const;  // keeps the layout of a dense tensor
  Tensor contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  // On that device; this tensor itself where it is there already. `non_blocking`: copy_.
  Tensor to(Device device, bool non_blocking = false) const;
  // view() where possible, else a copy.
  Tensor reshape(const Shape& shape) const;

  std::uint64_t version() const { return storage_ ? storage_->version() : 0; }
  void bump_version() const {
    if (storage_) storage_->bump_version();
  }
  bool shares_storage_with(const Tensor& other) const { return storage_ == other.storage_; }

 private:
  [[noreturn]] void wrong_access(DType wanted) const;
  Scalar item_scalar() const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Strides strides_;
  std::int64_t offset_ = 0;
  DType dtype_ = kF32;
};

}  // namespace lockstep
