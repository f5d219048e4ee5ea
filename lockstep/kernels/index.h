// Picking by index: rows of a table, elements along an axis, sorting. Indices are i64 or i32, each
// checked: one out of range is an Error that names it. All offsets are 64-bit.
#pragma once

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/extremum.h"

namespace lockstep::kernels {

// y[…, i, …] = x[…, index[i], …] along `axis`, for a 1-D index. Negative indices are refused.
Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index);
// dx[…, index[i], …] += dy[…, i, …] into zeros of `shape`, in the order of i; half types accumulate
// in f32.
Tensor index_select_backward(const Tensor& dy, const Shape& shape, std::int64_t axis,
                             const Tensor& index);

// y[i][j] = x[i][index[i][j]] (for axis 1 of two, and so on): index has x's rank and, but for the
// axis, sizes up to x's.
Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index);
// The other way into zeros of `shape`: dx[i][index[i][j]] += dy[i][j], in the order of j.
Tensor gather_backward(const Tensor& dy, const Shape& shape, std::int64_t axis,
                       const Tensor& index);

// Sorted along an axis, stable; NaN is the greatest: last if ascending, first if descending.
ValuesAndIndices sort(const Tensor& x, std::int64_t axis, bool descending);
// The k greatest (or smallest), in that order.
ValuesAndIndices topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest);

}  // namespace lockstep::kernels
