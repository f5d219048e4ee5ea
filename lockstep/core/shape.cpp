#include "lockstep/core/shape.h"

#include <algorithm>

#include "lockstep/core/check.h"

namespace lockstep {

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) {
  LOCKSTEP_CHECK(dims.size() <= kMaxRank, "shape: at most {} dimensions, got {}", kMaxRank,
                 dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  rank_ = static_cast<int>(dims.size());
}

Shape Shape::filled(int rank, std::int64_t value) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(value);
  return shape;
}

void Shape::push_back(std::int64_t dim) {
  LOCKSTEP_CHECK(rank_ < kMaxRank, "shape: at most {} dimensions, got one more", kMaxRank);
  dims_[rank_++] = dim;
}

Shape Shape::erased(int axis) const {
  Shape out;
  for (int i = 0; i < rank_; ++i)
    if (i != axis) out.push_back(dims_[i]);
  return out;
}

Shape Shape::inserted(int axis, std::int64_t dim) const {
  Shape out;
  for (int i = 0; i <= rank_; ++i) {
    if (i == axis) out.push_back(dim);
    if (i < rank_) out.push_back(dims_[i]);
  }
  return out;
}

std::int64_t Shape::numel() const {
  if (std::find(begin(), end(), 0) != end()) return 0;
  std::int64_t n = 1;
  for (int i = 0; i < rank_; ++i) {
    if (__builtin_mul_overflow(n, dims_[i], &n))
      throw Error(fmt::format("shape {}: the number of elements does not fit 63 bits", str()));
  }
  return n;
}

std::string Shape::str() const {
  return rank_ == 1 ? fmt::format("({},)", dims_[0])
                    : fmt::format("({})", fmt::join(begin(), end(), ", "));
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

Strides contiguous_strides(const Shape& shape, MemoryFormat format) {
  Strides strides = Shape::filled(shape.rank(), 1);
  if (format == MemoryFormat::kChannelsLast) {
    LOCKSTEP_CHECK(shape.rank() == 4, "channels-last: expected a shape (N, C, H, W) but got {}",
                   shape);
    const std::int64_t c = std::max<std::int64_t>(shape[1], 1);
    const std::int64_t w = std::max<std::int64_t>(shape[3], 1);
    const std::int64_t h = std::max<std::int64_t>(shape[2], 1);
    return {h * w * c, 1, w * c, c};
  }
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    // Only a tensor without elements can have a stride beyond 63 bits; none of its strides counts.
    if (__builtin_mul_overflow(step, std::max<std::int64_t>(shape[i], 1), &step)) step = 1;
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t da = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t db = i <= b.rank() ? b[b.rank() - i] : 1;
    LOCKSTEP_CHECK(da == db || da == 1 || db == 1,
                   "{}: shapes {} and {} do not broadcast (dimension {} from the right: {} and {})",
                   op, a, b, i, da, db);
    out[rank - i] = da == 1 ? db : da;
  }
  return out;
}

int normalize_axis(std::int64_t axis, int rank, const char* op) {
  const int limit = std::max(rank, 1);
  LOCKSTEP_CHECK(axis >= -limit && axis < limit, "{}: axis {} is outside [{}, {}]", op, axis,
                 -limit, limit - 1);
  return static_cast<int>(axis < 0 ? axis + limit : axis);
}

}  // namespace lockstep
