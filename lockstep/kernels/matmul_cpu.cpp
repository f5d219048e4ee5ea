#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/gemm.h"
#include "lockstep/kernels/gemm_cuda.h"
#include "lockstep/kernels/matmul.h"

namespace lockstep::kernels {
namespace {

// The leading axes of a batch.
Shape batch_axes(const Shape& shape) {
  return Shape(std::span<const std::int64_t>(shape.begin(), shape.end() - 2));
}

Shape joined(const Shape& batch, std::int64_t rows, std::int64_t cols) {
  Shape out = batch;
  out.push_back(rows);
  out.push_back(cols);
  return out;
}

// The matrix at place i (row-major over `batch`) of a tensor whose leading axes broadcast to it.
Tensor matrix_at(const Tensor& t, const Shape& batch, std::int64_t i) {
  std::int64_t offset = t.offset();
  const int lead = t.dim() - 2;
  for (int axis = batch.rank() - 1; axis >= 0; --axis) {
    const std::int64_t index = i % batch[axis];
    i /= batch[axis];
    const int own = axis - (batch.rank() - lead);
    if (own >= 0 && t.shape()[own] != 1) offset += index * t.strides()[own];
  }
  return t.as_strided({t.shape()[lead], t.shape()[lead + 1]},
                      {t.strides()[lead], t.strides()[lead + 1]}, offset);
}

// The matrices along the last axis of the batch that begin with place i, as (batch, rows, columns).
Tensor matrices_at(const Tensor& t, const Shape& batch, std::int64_t i) {
  const Tensor first = matrix_at(t, batch, i);
  const int axis = t.dim() - 3;
  const std::int64_t stride = axis < 0 || t.shape()[axis] == 1 ? 0 : t.strides()[axis];
  return t.as_strided({batch.back(), first.shape()[0], first.shape()[1]},
                      {stride, first.strides()[0], first.strides()[1]}, first.offset());
}

// out = a b over all of `batch`; where out's leading axes are shorter, products are added up.
void multiply(const Tensor& a, const Tensor& b, const Tensor& out, const Shape& batch) {
  const std::int64_t count = batch.numel();
  const bool sums = batch_axes(out.shape()).numel() != count;
  if (sums && (out.dtype() == kF16 || out.dtype() == kBF16)) {  // rounded once, not per product
    const Tensor wide = empty(out.shape(), {kF32, out.device()});
    multiply(cast(a, kF32), cast(b, kF32), wide, batch);
    return copy_elements(out, cast(wide, out.dtype()));
  }
  if (sums || count == 0) zero_(out);
  if constexpr (kHasCuda)
    if (out.device().is_cuda() && !sums && batch.rank() > 0 && out.numel() > 0 && a.numel() > 0) {
      for (std::int64_t i = 0; i < count; i += batch.back())
        cuda::gemm({.a = matrices_at(a, batch, i),
                    .b = matrices_at(b, batch, i),
                    .c = matrices_at(out, batch, i)});
      return;
    }
  for (std::int64_t i = 0; i < count; ++i)
    gemm(matrix_at(a, batch, i), matrix_at(b, batch, i), matrix_at(out, batch, i), sums);
}

// a as (…,M,K), b as (…,K,N); where b is one matrix, the batch of a is more rows of it.
struct Operands {
  Tensor a, b;
  Shape batch, y_shape;  // y_shape as the caller sees it

  Operands(const Tensor& a_given, const Tensor& b_given) : a(a_given), b(b_given) {
    LOCKSTEP_CHECK(a.dim() >= 1 && b.dim() >= 1,
                   "matmul: expected vectors or matrices but got {} "
                   "and {}",
                   a.shape(), b.shape());
    LOCKSTEP_CHECK(a.dtype() == b.dtype() && is_floating(a.dtype()),
                   "matmul: expected one floating dtype but got {} and {}", a.dtype(), b.dtype());
    common_device("matmul", {&a, &b});
    const bool row = a.dim() == 1, column = b.dim() == 1;
    if (row) a = a.unsqueeze(0);
    if (column) b = b.unsqueeze(1);
    const std::int64_t k = a.shape().back();
    LOCKSTEP_CHECK(k == b.shape()[b.dim() - 2],
                   "matmul: shapes {} and {} do not fit: {} columns "
                   "against {} rows",
                   a_given.shape(), b_given.shape(), k, b.shape()[b.dim() - 2]);
    batch = broadcast_shapes(batch_axes(a.shape()), batch_axes(b.shape()), "matmul");
    y_shape = batch;
    if (!row) y_shape.push_back(a.shape()[a.dim() - 2]);
    if (!column) y_shape.push_back(b.shape().back());
    if (b.dim() == 2 && a.dim() > 2) {
      a = a.reshape({a.numel() / std::max<std::int64_t>(k, 1), k});
      if (k == 0) a = a.reshape({y_shape.numel() / std::max<std::int64_t>(b.shape()[1], 1), 0});
      batch = Shape();
    }
  }
  std::int64_t m() const { return a.shape()[a.dim() - 2]; }
  std::int64_t n() const { return b.shape().back(); }
  Tensor y_like(const Tensor& y) const { return y.reshape(joined(batch, m(), n())); }
};

Tensor sums_like(const Tensor& t) { return empty(t.shape(), {t.dtype(), t.device()}); }

}  // namespace

Tensor matmul_forward(const Tensor& a, const Tensor& b) {
  const Operands o(a, b);
  const Tensor y = empty(joined(o.batch, o.m(), o.n()), {a.dtype(), a.device()});
  multiply(o.a, o.b, y, o.batch);
  return y.view(o.y_shape);
}

Tensor matmul_backward_a(const Tensor& dy, const Tensor& a, const Tensor& b) {
  const Operands o(a, b);
  const Tensor da = sums_like(o.a);
  multiply(o.y_like(dy), o.b.transpose(-1, -2), da, o.batch);
  return da.view(a.shape());
}

Tensor matmul_backward_b(const Tensor& dy, const Tensor& a, const Tensor& b) {
  const Operands o(a, b);
  const Tensor db = sums_like(o.b);
  multiply(o.a.transpose(-1, -2), o.y_like(dy), db, o.batch);
  return db.view(b.shape());
}

Tensor bmm_forward(const Tensor& a, const Tensor& b) {
  LOCKSTEP_CHECK(
      a.dim() == 3 && b.dim() == 3 && a.shape()[0] == b.shape()[0] && a.shape()[2] == b.shape()[1],
      "bmm: expected (B, M, K) and (B, K, N) but got {} and {}", a.shape(), b.shape());
  return matmul_forward(a, b);
}

}  // namespace lockstep::kernels
