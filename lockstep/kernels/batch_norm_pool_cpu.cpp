#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/batch_norm_channels.h"
#include "lockstep/kernels/batch_norm_cuda.h"
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

Device device_of(const Tensor& dy, const Tensor& taps, const Tensor& x,
                 const BatchNormState& state) {
  common_device("batch_norm_pool", {&dy, &taps});
  return batch_norm_device(x, state, &dy);
}

cuda::BatchNormGradient pooled_gradient(const Tensor& dy, const Tensor& taps, const Tensor& x,
                                        const Pool2dOptions& o) {
  return {dy, taps.contiguous(), x.shape(), {o.kernel[0], o.kernel[1]}};
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
  const Shape shape = checked_shape(x, state, options);
  const DType wide = batch_norm_wide(x.dtype());
  const Tensor images = channels_last(x, "batch_norm_pool");
  const Device device = batch_norm_device(x, state);
  const Tensor y = empty(shape, {x.dtype(), device, format});
  const Tensor taps = empty({shape[0], shape[2], shape[3], shape[1]}, {kU8, device});
  if (y.numel() == 0) return {y, taps};
  if constexpr (kHasCuda)
    if (device.is_cuda()) {
      cuda::batch_norm_pool_forward(images, cuda::batch_norm_state(state, shape[1], wide), options,
                                    y, taps);
      return {y, taps};
    }
  const BatchNormValues channels(state, shape[1], wide);
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
  const Shape shape = checked_shape(x, state, options);
  const DType dtype = batch_norm_wide(x.dtype());
  const Tensor gradient = checked_gradient(dy, taps, x, shape);
  const Tensor images = channels_last(x, "batch_norm_pool");
  if constexpr (kHasCuda)
    if (device_of(dy, taps, x, state).is_cuda()) {
      const Shape channel{shape[1]};
      BatchNormSums sums{zeros(channel, {dtype, x.device()}), zeros(channel, {dtype, x.device()})};
      const BatchNormState there = cuda::batch_norm_state(state, shape[1], dtype);
      if (shape.numel() > 0)
        cuda::batch_norm_backward_sums(pooled_gradient(gradient, taps, x, options),
                                       channel_rows(images), there, sums);
      return sums;
    }
  const BatchNormValues channels(state, shape[1], dtype);
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
  const Shape shape = checked_shape(x, state, options);
  const DType wide = batch_norm_wide(x.dtype());
  const Tensor gradient = checked_gradient(dy, taps, x, shape);
  const Tensor images = channels_last(x, "batch_norm_pool");
  const Tensor dx = empty(x.shape(), {x.dtype(), x.device(), MemoryFormat::kChannelsLast});
  if constexpr (kHasCuda)
    if (device_of(dy, taps, x, state).is_cuda()) {
      const BatchNormState there = cuda::batch_norm_state(state, shape[1], wide);
      if (dx.numel() > 0)
        cuda::batch_norm_backward(pooled_gradient(gradient, taps, x, options), channel_rows(images),
                                  there, sums, count, dx);
      return dx;
    }
  const BatchNormValues channels(state, shape[1], wide);
  const BatchNormFactors factors(channels, sums, count);
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
