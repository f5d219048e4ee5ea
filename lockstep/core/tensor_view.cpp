// The views of a tensor: new sizes and strides on the same storage.
#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/core/tensor.h"

namespace lockstep {
namespace {

// Replaces one -1 by what the others leave.
Shape infer_shape(Shape shape, std::int64_t numel, const Shape& from) {
  int unknown = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      LOCKSTEP_CHECK(unknown < 0, "view: more than one -1 in {}", shape);
      unknown = i;
    } else {
      LOCKSTEP_CHECK(shape[i] >= 0, "view: a dimension of {} is negative", shape);
    }
  }
  if (unknown >= 0) {
    const std::int64_t known = shape.erased(unknown).numel();
    LOCKSTEP_CHECK(known > 0 && numel % known == 0,
                   "view: shape {} does not fit the {} elements of {}", shape, numel, from);
    shape[unknown] = numel / known;
  }
  LOCKSTEP_CHECK(shape.numel() == numel, "view: shape {} does not fit the {} elements of {}", shape,
                 numel, from);
  return shape;
}

// Strides of `shape` over the same elements, or false where no strides do it. Walks the old axes
// from the back in runs that lie contiguously, and cuts each run into new axes.
bool view_strides(const Tensor& x, const Shape& shape, Strides* out) {
  *out = contiguous_strides(shape);
  if (x.numel() == 0 || x.is_contiguous()) return true;
  int target = shape.rank() - 1;
  std::int64_t run = 1;
  std::int64_t step = x.strides().back();
  for (int i = x.dim() - 1; i >= 0; --i) {
    run *= x.shape()[i];
    const bool run_ends = i == 0 || (x.shape()[i - 1] != 1 && x.strides()[i - 1] != run * step);
    if (!run_ends) continue;
    std::int64_t covered = 1;
    while (target >= 0 && (covered < run || shape[target] == 1)) {
      (*out)[target] = covered * step;
      covered *= shape[target];
      --target;
    }
    if (covered != run) return false;
    if (i > 0) {
      run = 1;
      step = x.strides()[i - 1];
    }
  }
  return target < 0;
}

void check_defined(const Tensor& x, const char* op) {
  LOCKSTEP_CHECK(x.defined(), "{}: the tensor is undefined", op);
}

}  // namespace

Tensor Tensor::view(const Shape& shape) const {
  check_defined(*this, "view");
  const Shape wanted = infer_shape(shape, numel(), shape_);
  Strides strides;
  LOCKSTEP_CHECK(view_strides(*this, wanted, &strides),
                 "view: shape {} cannot view a tensor of shape {} and strides {}; use reshape",
                 wanted, shape_, strides_);
  return {storage_, wanted, strides, offset_, dtype_};
}

Tensor Tensor::reshape(const Shape& shape) const {
  check_defined(*this, "reshape");
  const Shape wanted = infer_shape(shape, numel(), shape_);
  Strides strides;
  if (view_strides(*this, wanted, &strides)) return {storage_, wanted, strides, offset_, dtype_};
  return contiguous().view(wanted);
}

Tensor Tensor::permute(std::span<const int> axes) const {
  LOCKSTEP_CHECK(static_cast<int>(axes.size()) == dim(),
                 "permute: {} axes given for a tensor of shape {}", axes.size(), shape_);
  Shape shape = shape_;
  Strides strides = strides_;
  bool seen[kMaxRank] = {};
  for (int i = 0; i < dim(); ++i) {
    const int from = normalize_axis(axes[i], dim(), "permute");
    LOCKSTEP_CHECK(!seen[from], "permute: axis {} is named twice", from);
    seen[from] = true;
    shape[i] = shape_[from];
    strides[i] = strides_[from];
  }
  return {storage_, shape, strides, offset_, dtype_};
}

Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const {
  const int i = normalize_axis(a, dim(), "transpose");
  const int j = normalize_axis(b, dim(), "transpose");
  if (dim() == 0) return *this;
  Tensor out = *this;
  std::swap(out.shape_[i], out.shape_[j]);
  std::swap(out.strides_[i], out.strides_[j]);
  return out;
}

Tensor Tensor::t() const {
  LOCKSTEP_CHECK(dim() == 2, "t: expected a matrix but got shape {}", shape_);
  return transpose(0, 1);
}

Tensor Tensor::slice(std::int64_t axis, std::int64_t start, std::int64_t end,
                     std::int64_t step) const {
  LOCKSTEP_CHECK(dim() > 0, "slice: a tensor without dimensions has no axis to slice");
  const int a = normalize_axis(axis, dim(), "slice");
  LOCKSTEP_CHECK(step > 0, "slice: expected a step of at least 1 but got {}", step);
  const std::int64_t n = shape_[a];
  const auto clamp = [n](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? i + n : i, 0, n);
  };
  const std::int64_t first = clamp(start);
  const std::int64_t last = std::max(first, clamp(end));
  Tensor out = *this;
  out.shape_[a] = last == first ? 0 : (last - first - 1) / step + 1;
  out.offset_ += out.shape_[a] > 0 ? first * strides_[a] : 0;
  if (out.shape_[a] > 1) out.strides_[a] *= step;  // else no stride counts, and this may overflow
  return out;
}

Tensor Tensor::select(std::int64_t axis, std::int64_t index) const {
  LOCKSTEP_CHECK(dim() > 0, "select: a tensor without dimensions has no axis to select from");
  const int a = normalize_axis(axis, dim(), "select");
  LOCKSTEP_CHECK(index >= -shape_[a] && index < shape_[a],
                 "select: index {} is outside axis {} of shape {}", index, a, shape_);
  const std::int64_t i = index < 0 ? index + shape_[a] : index;
  return {storage_, shape_.erased(a), strides_.erased(a), offset_ + i * strides_[a], dtype_};
}

Tensor Tensor::squeeze(std::int64_t axis) const {
  const int a = normalize_axis(axis, dim(), "squeeze");
  if (dim() == 0 || shape_[a] != 1) return *this;
  return {storage_, shape_.erased(a), strides_.erased(a), offset_, dtype_};
}

Tensor Tensor::unsqueeze(std::int64_t axis) const {
  check_defined(*this, "unsqueeze");
  const int a = normalize_axis(axis, dim() + 1, "unsqueeze");
  const std::int64_t stride = a < dim() ? shape_[a] * strides_[a] : 1;
  return {storage_, shape_.inserted(a, 1), strides_.inserted(a, stride), offset_, dtype_};
}

Tensor Tensor::expand(const Shape& shape) const {
  check_defined(*this, "expand");
  LOCKSTEP_CHECK(shape.rank() >= dim(), "expand: shape {} has fewer dimensions than {}", shape,
                 shape_);
  Shape sizes = shape;
  Strides strides = Shape::filled(shape.rank(), 0);
  const int lead = shape.rank() - dim();
  for (int i = 0; i < dim(); ++i) {
    if (sizes[lead + i] == -1) sizes[lead + i] = shape_[i];
    const std::int64_t wanted = sizes[lead + i];
    LOCKSTEP_CHECK(shape_[i] == wanted || shape_[i] == 1, "expand: {} does not expand to {}",
                   shape_, shape);
    strides[lead + i] = shape_[i] == wanted ? strides_[i] : 0;
  }
  for (std::int64_t d : sizes)
    LOCKSTEP_CHECK(d >= 0, "expand: {} does not expand to {}", shape_, shape);
  return {storage_, sizes, strides, offset_, dtype_};
}

Tensor Tensor::as_strided(const Shape& shape, const Strides& strides, std::int64_t offset) const {
  check_defined(*this, "as_strided");
  LOCKSTEP_CHECK(shape.rank() == strides.rank(),
                 "as_strided: shape {} and strides {} differ in rank", shape, strides);
  for (std::int64_t d : shape)
    LOCKSTEP_CHECK(d >= 0, "as_strided: a dimension of {} is negative", shape);
  __int128 low = offset, high = offset;
  for (int i = 0; i < shape.rank(); ++i) {
    const __int128 reach =
        static_cast<__int128>(std::max<std::int64_t>(shape[i] - 1, 0)) * strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto elements = static_cast<std::int64_t>(storage_->bytes() / itemsize());
  const bool has_none = shape.numel() == 0;
  LOCKSTEP_CHECK(has_none ? offset >= 0 && offset <= elements : low >= 0 && high < elements,
                 "as_strided: shape {}, strides {}, offset {} leave a storage of {} elements",
                 shape, strides, offset, elements);
  return {storage_, shape, strides, offset, dtype_};
}

}  // namespace lockstep
