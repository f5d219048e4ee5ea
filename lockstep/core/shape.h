// Sizes and strides: a short list of 64-bit integers held in place, up to kMaxRank long.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);
  // `rank` dimensions of `value` each.
  static Shape filled(int rank, std::int64_t value);

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t operator[](int axis) const { return dims_[axis]; }
  std::int64_t& operator[](int axis) { return dims_[axis]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  std::int64_t* begin() { return dims_.data(); }
  std::int64_t* end() { return dims_.data() + rank_; }
  std::int64_t back() const { return dims_[rank_ - 1]; }
  void push_back(std::int64_t dim);
  // Without / with one axis.
  Shape erased(int axis) const;
  Shape inserted(int axis, std::int64_t dim) const;

  // Product of the dimensions; 1 for rank 0. Throws Error if it leaves 63 bits.
  std::int64_t numel() const;
  // "(2, 3, 4)".
  std::string str() const;
  std::vector<std::int64_t> vec() const { return {begin(), end()}; }

  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

using Strides = Shape;  // in elements, not bytes

enum class MemoryFormat : std::uint8_t { kContiguous, kChannelsLast };

// Row-major strides; for kChannelsLast the NHWC strides of a logical (N, C, H, W).
Strides contiguous_strides(const Shape& shape, MemoryFormat format = MemoryFormat::kContiguous);

// NumPy's rule. Throws Error naming both shapes and `op` where they don't fit.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

// Maps -rank..rank-1 to 0..rank-1; throws Error otherwise.
int normalize_axis(std::int64_t axis, int rank, const char* op);

}  // namespace lockstep
