// A tensor as rows along one axis. Internal: not for embedders.
#pragma once

#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

// The tensor with `axis` moved to the end, contiguous: a copy only if the axis' elements or the
// rows are not already in that order (so a channels-last image by its channels is none).
inline Tensor to_rows(const Tensor& x, int axis) {
  std::vector<int> order;
  for (int i = 0; i < x.dim(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return x.permute(order).contiguous();
}

// Undoes to_rows' permutation and gives the result `like`'s layout if that is dense.
inline Tensor from_rows(const Tensor& rows, int axis, const Tensor& like) {
  std::vector<int> order;
  for (int i = 0; i < rows.dim(); ++i)
    order.push_back(i < axis ? i : i == axis ? rows.dim() - 1 : i - 1);
  Tensor y = rows.permute(order);
  if (!like.is_dense()) return y.contiguous();
  if (y.strides() == like.strides()) return y;
  Tensor out = empty_like(like, rows.dtype());
  copy_elements(out, y);
  return out;
}

// Rows per thread's chunk, so that a chunk holds enough work to be worth handing out.
inline std::int64_t row_grain(std::int64_t length) {
  constexpr std::int64_t kElements = 16384;
  return length >= kElements ? 1 : kElements / (length > 0 ? length : 1);
}

}  // namespace lockstep::kernels
