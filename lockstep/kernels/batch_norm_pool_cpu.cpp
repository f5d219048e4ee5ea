#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/batch_norm_channels.h"
#include "lockstep/kernels/batch_norm_pool.h"
#include "lockstep/kernels/batch_norm_pool_simd.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/image_layout.h"

namespace lockstep::kernels {
namespace {

PoolWindows windows(const Tensor& x, const Shape& y, const Pool2dOptions& o) {
  return {.c = x.shape()[1],
          .h = x.shape()[2],
          .w = x.shape()[3],
          .oh = y[2],
          .ow = y[3],
          .kernel = {o.kernel[0], o.kernel[1]},
          .stride = {o.stride[0], o.stride[1]},
          .padding = {0, 0},
          .dilation = {1, 1}};
}

PooledStrides strides(const Tensor& t) {
  const Strides& s = t.strides();
  return {s[0], s[2], s[3], t.shape()[1] == 1 ? 1 : s[1]};
}

Shape checked_shape(const Tensor& x, const BatchNormState& state, const Pool2dOptions& o) {
  LOCKSTEP_CHECK(
      is_tiling(o) && state.relu,
      "batch_norm_pool: expected windows side by side of at most 256 positions, behind a "
      "ReLU");
  return pool2d_shape(x.shape(), o, "batch_norm_pool");
}

// dy and taps checked, dy in a layout that the loops read.
Tensor checked_gradient(const Tensor& dy, const Tensor& taps, const Tensor& x, const Shape& shape) {
  LOCKSTEP_CHECK(dy.shape() == shape && dy.dtype() == x.dtype(),
                 "batch_norm_pool: expected a gradient {} {} but got {} {}", x.dtype(), shape,
                 dy.dtype(), dy.shape());
  LOCKSTEP_CHECK(
      taps.dtype() == kU8 && taps.shape() == Shape({shape[0], shape[2], shape[3], shape[1]}),
      "batch_norm_pool: the saved positions {} do not fit {}", taps.shape(), shape);
  return dy.is_contiguous() ? dy : channels_last(dy, "batch_norm_pool");
}

std::int64_t row_grain(const PoolWindows& p) {
  constexpr std::int64_t kElements = 32768;
  return kElements / std::max<std::int64_t>(p.kernel[0] * p.w * p.c, 1) + 1;
}

}  // namespace

bool is_tiling(const Pool2dOptions& o) {
  return o.kernel[0] == o.stride[0] && o.kernel[1] == o.stride[1] && o.padding[0] == 0 &&
         o.padding[1] == 0 && o.dilation[0] == 1 && o.dilation[1] == 1 && !o.ceil_mode &&
         o.kernel[0] * o.kernel[1] <= 256;
}

MaxPool2dResult batch_norm_pool_forward(const Tensor& x, const BatchNormState& state,
                                        const Pool2dOptions& options, MemoryFormat format) {
  require_cpu("batch_norm_pool", {&x});
  const Shape shape = checked_shape(x, state, options);
  const BatchNormValues channels(state, shape[1], batch_norm_wide(x.dtype()));
  const Tensor images = channels_last(x, "batch_norm_pool");
  const Tensor y = empty(shape, {.dtype = x.dtype(), .format = format});
  const Tensor taps = empty({shape[0], shape[2], shape[3], shape[1]}, {.dtype = kU8});
  if (y.numel() == 0) return {y, taps};
  const PoolWindows p = windows(x, shape, options);
  parallel_for(shape[0] * p.oh, row_grain(p), [&](std::int64_t begin, std::int64_t end) {
    batch_norm_pool_kernels().forward(x.dtype(), images.data(), y.data(), taps.data<std::uint8_t>(),
                                      p, strides(y), channels.view(), begin, end);
  });
  return {y, taps};
}

BatchNormSums batch_norm_pool_backward_sums(const Tensor& dy, const Tensor& taps, const Tensor& x,
                                            const BatchNormState& state,
                                            const Pool2dOptions& options) {
  require_cpu("batch_norm_pool", {&dy, &taps, &x});
  const Shape shape = checked_shape(x, state, options);
  const DType dtype = batch_norm_wide(x.dtype());
  const BatchNormValues channels(state, shape[1], dtype);
  const Tensor gradient = checked_gradient(dy, taps, x, shape);
  const Tensor images = channels_last(x, "batch_norm_pool");
  const PoolWindows p = windows(x, shape, options);
  const RowBlocks blocks(shape.numel() == 0 ? 0 : shape[0] * p.oh, p.kernel[0] * p.w * p.c);
  return add_blocks(
      per_block(
          blocks, p.c, dtype,
          [&](std::int64_t first, std::int64_t rows, void* scratch, double* sum, double* product) {
            batch_norm_pool_kernels().backward_sums(
                x.dtype(), images.data(), gradient.data(), taps.data<std::uint8_t>(), p,
                strides(gradient), channels.view(), scratch, sum, product, first, first + rows);
          }),
      dtype);
}

Tensor batch_norm_pool_backward(const Tensor& dy, const Tensor& taps, const Tensor& x,
                                const BatchNormState& state, const Pool2dOptions& options,
                                const BatchNormSums& sums, std::int64_t count) {
  require_cpu("batch_norm_pool", {&dy, &taps, &x});
  const Shape shape = checked_shape(x, state, options);
  const BatchNormValues channels(state, shape[1], batch_norm_wide(x.dtype()));
  const BatchNormFactors factors(channels, sums, count);
  const Tensor gradient = checked_gradient(dy, taps, x, shape);
  const Tensor images = channels_last(x, "batch_norm_pool");
  const Tensor dx = empty(x.shape(), {.dtype = x.dtype(), .format = MemoryFormat::kChannelsLast});
  if (dx.numel() == 0) return dx;
  const PoolWindows p = windows(x, shape, options);
  const void* const k[3] = {channels.scale.data(), factors.along.data(), factors.constant.data()};
  parallel_for(shape[0] * p.oh, row_grain(p), [&](std::int64_t begin, std::int64_t end) {
    batch_norm_pool_kernels().backward_apply(x.dtype(), images.data(), gradient.data(),
                                             taps.data<std::uint8_t>(), dx.data(), p,
                                             strides(gradient), channels.view(), k, begin, end);
  });
  return dx;
}

}  // namespace lockstep::kernels
