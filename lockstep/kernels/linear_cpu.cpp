#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/column_sums.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/gemm.h"
#include "lockstep/kernels/gemm_cuda.h"
#include "lockstep/kernels/linear.h"

namespace lockstep::kernels {
namespace {

// All axes but the last as one.
Tensor as_matrix(const Tensor& x) {
  const std::int64_t cols = x.shape().back();
  if (x.dim() == 2) return x;
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.dim(); ++i) rows *= x.shape()[i];
  return x.reshape({rows, cols});
}

Shape with_last(const Shape& shape, std::int64_t last) {
  Shape out = shape;
  out[shape.rank() - 1] = last;
  return out;
}

}  // namespace

Tensor linear_forward(const Tensor& x, const Tensor& w, const Tensor& b, bool relu) {
  LOCKSTEP_CHECK(x.dim() >= 1 && w.dim() == 2 && x.shape().back() == w.shape()[1],
                 "linear: an input of shape {} does not fit weights {} (out, in)", x.shape(),
                 w.shape());
  LOCKSTEP_CHECK(x.dtype() == w.dtype() && (!b.defined() || b.dtype() == x.dtype()),
                 "linear: expected one dtype but got {}, weights {} and bias {}", x.dtype(),
                 w.dtype(), b.defined() ? b.dtype() : w.dtype());
  LOCKSTEP_CHECK(!b.defined() || (b.dim() == 1 && b.numel() == w.shape()[0]),
                 "linear: bias {} does not fit weights {}", b.shape(), w.shape());
  const Device device = common_device("linear", {&x, &w, &b});
  const Tensor y = empty(with_last(x.shape(), w.shape()[0]), {x.dtype(), device});
  const Tensor rows = as_matrix(y);
  if constexpr (kHasCuda)
    if (device.is_cuda() && y.numel() > 0 && x.shape().back() > 0) {
      cuda::gemm({.a = as_matrix(x), .b = w.t(), .c = rows, .bias = b, .relu = relu});
      return y;
    }
  if (b.defined()) copy_elements(rows, b.unsqueeze(0).expand(rows.shape()));
  gemm(as_matrix(x), w.t(), rows, b.defined());
  return relu ? kernels::relu(y) : y;
}

Tensor linear_backward_input(const Tensor& dy, const Tensor& w) {
  const Tensor dx = empty(with_last(dy.shape(), w.shape()[1]), {dy.dtype(), dy.device()});
  gemm(as_matrix(dy), w, as_matrix(dx));
  return dx;
}

Tensor linear_backward_weight(const Tensor& dy, const Tensor& x) {
  const Tensor rows = as_matrix(dy), in = as_matrix(x);
  const Tensor dw = empty({rows.shape()[1], in.shape()[1]}, {dy.dtype(), dy.device()});
  gemm(rows.t(), in, dw);
  return dw;
}

Tensor linear_backward_bias(const Tensor& dy) {
  const Tensor rows = as_matrix(dy).contiguous();
  const Tensor db = empty({rows.shape()[1]}, {dy.dtype(), dy.device()});
  column_sums(rows, rows.shape()[0], db);
  return db;
}

}  // namespace lockstep::kernels
