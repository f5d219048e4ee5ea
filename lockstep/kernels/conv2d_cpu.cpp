#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/column_sums.h"
#include "lockstep/kernels/conv2d.h"
#include "lockstep/kernels/conv2d_cuda.h"
#include "lockstep/kernels/conv2d_cudnn.h"
#include "lockstep/kernels/conv2d_plan.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/image_layout.h"

namespace lockstep::kernels {
namespace {

ConvPlan plan(const Shape& x, const Shape& w, const Shape& y, const Conv2dOptions& o) {
  return {.n = x[0],
          .groups = o.groups,
          .ic = x[1],
          .ih = x[2],
          .iw = x[3],
          .oc = w[0],
          .oh = y[2],
          .ow = y[3],
          .kh = w[2],
          .kw = w[3],
          .stride = {o.stride[0], o.stride[1]},
          .padding = {o.padding[0], o.padding[1]},
          .dilation = {o.dilation[0], o.dilation[1]}};
}

void check_dtypes(const Tensor& a, const Tensor& b) {
  LOCKSTEP_CHECK(is_floating(a.dtype()) && a.dtype() == b.dtype(),
                 "conv2d: expected one floating dtype for all tensors but got {} and {}", a.dtype(),
                 b.dtype());
}

Tensor images(const Shape& shape, DType dtype, Device device) {
  return empty(shape, {dtype, device, MemoryFormat::kChannelsLast});
}

bool is_half(DType dtype) { return dtype == kF16 || dtype == kBF16; }

bool may_use_library(const Conv2dOptions& options) {
  return options.algorithm != ConvAlgorithm::kGemm;
}

Tensor widened(const Tensor& t) { return t.defined() ? cast(t, kF32) : t; }

// y = b for every pixel: what is left of a convolution without terms.
void fill_with_bias(const Tensor& y, const Tensor& b) {
  if (b.defined())
    copy_elements(y, b.view({1, b.numel(), 1, 1}).expand(y.shape()));
  else
    zero_(y);
}

}  // namespace

Shape conv2d_shape(const Shape& x, const Shape& w, const Conv2dOptions& o) {
  LOCKSTEP_CHECK(x.rank() == 4 && w.rank() == 4,
                 "conv2d: expected images (N, C, H, W) and weights (K, C/groups, R, S) but got {} "
                 "and {}",
                 x, w);
  LOCKSTEP_CHECK(o.groups >= 1 && w[1] * o.groups == x[1] && w[0] % o.groups == 0,
                 "conv2d: weights {} do not fit images {} in {} groups", w, x, o.groups);
  Shape y{x[0], w[0], 0, 0};
  for (int i = 0; i < 2; ++i) {
    LOCKSTEP_CHECK(o.stride[i] >= 1 && o.dilation[i] >= 1 && o.padding[i] >= 0 && w[2 + i] >= 1,
                   "conv2d: expected stride, dilation and kernel size of at least 1 and padding of "
                   "at least 0 but got {}, {}, {} and {}",
                   o.stride[i], o.dilation[i], w[2 + i], o.padding[i]);
    const std::int64_t room = x[2 + i] + 2 * o.padding[i] - o.dilation[i] * (w[2 + i] - 1) - 1;
    LOCKSTEP_CHECK(
        room >= 0,
        "conv2d: the window of weights {} with dilation {} is larger than images {} with "
        "padding {}",
        w, o.dilation[i], x, o.padding[i]);
    y[2 + i] = room / o.stride[i] + 1;
  }
  return y;
}

Tensor conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& b,
                      const Conv2dOptions& options, bool relu) {
  check_dtypes(x, w);
  const Shape shape = conv2d_shape(x.shape(), w.shape(), options);
  if (b.defined()) {
    check_dtypes(x, b);
    LOCKSTEP_CHECK(b.dim() == 1 && b.numel() == shape[1], "conv2d: bias {} does not fit weights {}",
                   b.shape(), w.shape());
  }
  const Tensor images_in = channels_last(x, "conv2d");
  const Tensor weights = w.contiguous();
  const Tensor bias = b.defined() ? b.contiguous() : b;
  const Device device = common_device("conv2d", {&x, &w, &b});
  const Tensor y = images(shape, x.dtype(), device);
  if (y.numel() == 0) return y;
  const ConvPlan p = plan(x.shape(), w.shape(), shape, options);
  if (p.ic == 0) {
    fill_with_bias(y, bias);
    return relu ? kernels::relu(y) : y;
  }
  if constexpr (kHasCuda)
    if (device.is_cuda()) {
      const Tensor last = weights.contiguous(MemoryFormat::kChannelsLast);
      if (may_use_library(options) && cuda::conv2d_cudnn_forward(p, images_in, last, y)) {
        if (bias.defined()) add_into(y, y, bias.view({1, bias.numel(), 1, 1}));
        return relu ? kernels::relu(y) : y;
      }
      cuda::conv2d_forward(p, images_in, last, bias, relu, y);
      return y;
    }
  if (may_use_library(options) && conv2d_library_forward(p, images_in, weights, bias, relu, y))
    return y;
  if (is_half(x.dtype()))
    return cast(conv2d_forward(widened(images_in), widened(weights), widened(bias), options, relu),
                x.dtype());
  conv2d_gemm_forward(p, images_in, weights, bias, y);
  return relu ? kernels::relu(y) : y;
}

Tensor conv2d_backward_data(const Tensor& dy, const Tensor& w, const Shape& x,
                            const Conv2dOptions& options) {
  check_dtypes(dy, w);
  const Shape shape = conv2d_shape(x, w.shape(), options);
  LOCKSTEP_CHECK(dy.shape() == shape, "conv2d: expected a gradient {} but got {}", shape,
                 dy.shape());
  const Device device = common_device("conv2d", {&dy, &w});
  const Tensor dx = images(x, dy.dtype(), device);
  if (dx.numel() == 0) return dx;
  if (dy.numel() == 0) {
    zero_(dx);
    return dx;
  }
  const Tensor gradient = channels_last(dy, "conv2d");
  const Tensor weights = w.contiguous();
  const ConvPlan p = plan(x, w.shape(), shape, options);
  if constexpr (kHasCuda)
    if (device.is_cuda()) {
      const Tensor last = weights.contiguous(MemoryFormat::kChannelsLast);
      if (!may_use_library(options) || !cuda::conv2d_cudnn_backward_data(p, gradient, last, dx))
        cuda::conv2d_backward_data(p, gradient, last, dx);
      return dx;
    }
  if (may_use_library(options) && conv2d_library_backward_data(p, gradient, weights, dx)) return dx;
  if (is_half(dy.dtype()))
    return cast(conv2d_backward_data(widened(gradient), widened(weights), x, options), dy.dtype());
  conv2d_gemm_backward_data(p, gradient, weights, dx);
  return dx;
}

Conv2dWeightGradients conv2d_backward_weights(const Tensor& dy, const Tensor& x, const Shape& w,
                                              bool with_bias, const Conv2dOptions& options) {
  check_dtypes(dy, x);
  const Shape shape = conv2d_shape(x.shape(), w, options);
  LOCKSTEP_CHECK(dy.shape() == shape, "conv2d: expected a gradient {} but got {}", shape,
                 dy.shape());
  const DType dtype = x.dtype();
  const Device device = common_device("conv2d", {&dy, &x});
  const DType wide = dtype == kF64 ? kF64 : kF32;
  const Tensor dw = empty(w, {wide, device});
  const Tensor db = with_bias ? empty({w[0]}, {wide, device}) : Tensor();
  const auto result = [&]() -> Conv2dWeightGradients {
    return {cast(dw, dtype), with_bias ? cast(db, dtype) : db};
  };
  const Tensor gradient = channels_last(dy, "conv2d");
  if (dw.numel() == 0 || dy.numel() == 0) {
    zero_(dw);
    if (with_bias) column_sums(cast(gradient, wide), shape[0] * shape[2] * shape[3], db);
    return result();
  }
  const Tensor images_in = channels_last(x, "conv2d");
  const ConvPlan p = plan(x.shape(), w, shape, options);
  if constexpr (kHasCuda)
    if (device.is_cuda()) {
      const Tensor of_w = empty(w, {dtype, device, MemoryFormat::kChannelsLast});
      if (!may_use_library(options) ||
          !cuda::conv2d_cudnn_backward_weights(p, gradient, images_in, of_w))
        cuda::conv2d_backward_weights(p, gradient, images_in, of_w);
      const Tensor of_b = with_bias ? empty({w[0]}, {dtype, device}) : Tensor();
      if (with_bias) column_sums(gradient, p.n * p.oh * p.ow, of_b);
      return {of_w.contiguous(), of_b};
    }
  if (may_use_library(options) && conv2d_library_backward_weights(p, gradient, images_in, dw, db))
    return result();
  const Tensor wide_gradient = cast(gradient, wide);
  conv2d_gemm_backward_weights(p, wide_gradient, cast(images_in, wide), dw);
  if (with_bias) column_sums(wide_gradient, p.n * p.oh * p.ow, db);
  return result();
}

}  // namespace lockstep::kernels
