#include "lockstep/kernels/max_pool2d.h"

#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/image_layout.h"
#include "lockstep/kernels/max_pool2d_cuda.h"
#include "lockstep/kernels/max_pool2d_simd.h"

namespace lockstep::kernels {
namespace {

PoolWindows windows(const Shape& x, const Shape& y, const Pool2dOptions& o) {
  return {.c = x[1],
          .h = x[2],
          .w = x[3],
          .oh = y[2],
          .ow = y[3],
          .kernel = {o.kernel[0], o.kernel[1]},
          .stride = {o.stride[0], o.stride[1]},
          .padding = {o.padding[0], o.padding[1]},
          .dilation = {o.dilation[0], o.dilation[1]}};
}

PooledStrides strides(const Tensor& t) {
  const Strides& s = t.strides();
  // The channel stride of a single channel means nothing, and 1 is the fast one.
  return {s[0], s[2], s[3], t.shape()[1] == 1 ? 1 : s[1]};
}

// Whether an element of x can be in more than one window.
bool windows_overlap(const Pool2dOptions& o) {
  const auto along = [&](int i) { return o.stride[i] < o.dilation[i] * (o.kernel[i] - 1) + 1; };
  return along(0) || along(1);
}

Shape checked_shape(const Shape& x, const Pool2dOptions& options) {
  LOCKSTEP_CHECK(options.kernel[0] * options.kernel[1] <= 256,
                 "max_pool2d: expected a window of at most 256 positions but got {} x {}",
                 options.kernel[0], options.kernel[1]);
  return pool2d_shape(x, options, "max_pool2d");
}

}  // namespace

MaxPool2dResult max_pool2d_forward(const Tensor& x, const Pool2dOptions& options,
                                   MemoryFormat format) {
  LOCKSTEP_CHECK(is_floating(x.dtype()), "max_pool2d: expected a floating dtype but got {}",
                 x.dtype());
  const Shape shape = checked_shape(x.shape(), options);
  const Tensor images = channels_last(x, "max_pool2d");
  const Tensor y = empty(shape, {x.dtype(), x.device(), format});
  const Tensor taps = empty({shape[0], shape[2], shape[3], shape[1]}, {kU8, x.device()});
  if (y.numel() == 0) return {y, taps};
  if constexpr (kHasCuda)
    if (x.device().is_cuda()) {
      cuda::max_pool2d_forward(images, options, y, taps);
      return {y, taps};
    }
  const PoolWindows p = windows(x.shape(), shape, options);
  const std::int64_t grain = std::max<std::int64_t>(16384 / (p.ow * p.c), 1);
  parallel_for(shape[0] * p.oh, grain, [&](std::int64_t begin, std::int64_t end) {
    max_pool_kernels().forward(x.dtype(), images.data(), y.data(), taps.data<std::uint8_t>(), p,
                               strides(y), begin, end);
  });
  return {y, taps};
}

Tensor max_pool2d_backward(const Tensor& dy, const Tensor& taps, const Shape& x,
                           const Pool2dOptions& options) {
  const Device device = common_device("max_pool2d", {&dy, &taps});
  const Shape shape = checked_shape(x, options);
  LOCKSTEP_CHECK(dy.shape() == shape, "max_pool2d: expected a gradient {} but got {}", shape,
                 dy.shape());
  LOCKSTEP_CHECK(
      taps.dtype() == kU8 && taps.shape() == Shape({shape[0], shape[2], shape[3], shape[1]}),
      "max_pool2d: the saved positions {} do not fit {}", taps.shape(), shape);
  if constexpr (kHasCuda)
    if (device.is_cuda()) {
      const Tensor dx = empty(x, {dy.dtype(), device, MemoryFormat::kChannelsLast});
      if (dy.numel() == 0)
        zero_(dx);
      else
        cuda::max_pool2d_backward(dy, taps.contiguous(), options, dx);
      return dx;
    }
  const bool overlap = windows_overlap(options);
  const DType sums = overlap && dy.dtype() != kF64 ? kF32 : dy.dtype();
  const Tensor dx = empty(x, {.dtype = sums, .format = MemoryFormat::kChannelsLast});
  if (dx.numel() == 0) return cast(dx, dy.dtype());
  if (dy.numel() == 0) {
    zero_(dx);
    return cast(dx, dy.dtype());
  }
  const Tensor gradient = dy.is_contiguous() ? dy : channels_last(dy, "max_pool2d");
  const PoolWindows p = windows(x, shape, options);
  parallel_for(x[0], 32768 / (p.h * p.w * p.c) + 1, [&](std::int64_t begin, std::int64_t end) {
    max_pool_kernels().backward(dy.dtype(), gradient.data(), taps.data<std::uint8_t>(), dx.data(),
                                p, strides(gradient), overlap, begin, end);
  });
  return cast(dx, dy.dtype());
}

}  // namespace lockstep::kernels
