#include "lockstep/kernels/batch_norm_channels.h"

#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/batch_norm_cuda.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/device_check.h"

namespace lockstep::kernels {
namespace {

// (C) in the dtype, contiguous; `value` everywhere where t is undefined.
Tensor channel_values(const Tensor& t, std::int64_t c, DType dtype, double value,
                      const char* name) {
  if (!t.defined()) return full({c}, value, {.dtype = dtype});
  LOCKSTEP_CHECK(t.dim() == 1 && t.numel() == c,
                 "batch_norm: {} has shape {}, which does not fit {} channels", name, t.shape(), c);
  return cast(t, dtype).contiguous();
}

}  // namespace

DType batch_norm_wide(DType dtype) {
  LOCKSTEP_CHECK(is_floating(dtype), "batch_norm: expected a floating dtype but got {}", dtype);
  return dtype == kF64 ? kF64 : kF32;
}

Device batch_norm_device(const Tensor& x, const BatchNormState& s, const Tensor* dy) {
  const Tensor none;
  return common_device("batch_norm",
                       {&x, &s.mean, &s.inverse_std, &s.gamma, &s.beta, dy ? dy : &none});
}

BatchNormState cuda::batch_norm_state(const BatchNormState& s, std::int64_t c, DType wide) {
  const auto values = [&](const Tensor& t, const char* name) {
    return t.defined() ? channel_values(t, c, wide, 0, name) : t;
  };
  return {values(s.mean, "mean"), values(s.inverse_std, "inverse_std"), values(s.gamma, "weight"),
          values(s.beta, "bias"), s.relu};
}

BatchNormValues::BatchNormValues(const BatchNormState& s, std::int64_t c, DType dtype)
    : mean(channel_values(s.mean, c, dtype, 0, "mean")),
      inverse_std(channel_values(s.inverse_std, c, dtype, 1, "inverse_std")),
      beta(channel_values(s.beta, c, dtype, 0, "bias")),
      scale(empty({c}, {.dtype = dtype})),
      relu(s.relu) {
  const Tensor gamma = channel_values(s.gamma, c, dtype, 1, "weight");
  visit_floating(dtype, "batch_norm", [&]<class A>() {
    for (std::int64_t j = 0; j < c; ++j)
      scale.data<A>()[j] = gamma.data<A>()[j] * inverse_std.data<A>()[j];
  });
}

BatchNormFactors::BatchNormFactors(const BatchNormValues& values, const BatchNormSums& sums,
                                   std::int64_t count)
    : along(zeros_like(values.scale)), constant(zeros_like(values.scale)) {
  if (count == 0) return;
  const std::int64_t c = values.scale.numel();
  const DType dtype = values.scale.dtype();
  const Tensor sum_dy = channel_values(sums.dy, c, dtype, 0, "the sum of gradients");
  const Tensor sum_xmu = channel_values(sums.dy_xmu, c, dtype, 0, "the sum of gradients");
  visit_floating(dtype, "batch_norm", [&]<class A>() {
    for (std::int64_t j = 0; j < c; ++j) {
      const double scale = static_cast<double>(values.scale.data<A>()[j]);
      const double inverse = static_cast<double>(values.inverse_std.data<A>()[j]);
      const double n = static_cast<double>(count);
      along.data<A>()[j] = static_cast<A>(-scale * inverse * inverse * sum_xmu.data<A>()[j] / n);
      constant.data<A>()[j] = static_cast<A>(-scale * sum_dy.data<A>()[j] / n);
    }
  });
}

RowBlocks::RowBlocks(std::int64_t total_rows, std::int64_t elements) : total(total_rows) {
  constexpr std::int64_t kElements = 65536, kMost = 64;
  const std::int64_t wanted = std::clamp<std::int64_t>(total * elements / kElements, 1, kMost);
  rows = std::max<std::int64_t>((total + wanted - 1) / wanted, 1);
  count = (total + rows - 1) / rows;
}

Tensor per_block(const RowBlocks& blocks, std::int64_t c, DType dtype, const BlockFunction& f) {
  Tensor results = empty({2, blocks.count, c}, {.dtype = kF64});
  double* out = results.data<double>();
  parallel_for(blocks.count, 1, [&](std::int64_t begin, std::int64_t end) {
    const Tensor scratch = empty({3 * c}, {.dtype = dtype});
    for (std::int64_t b = begin; b < end; ++b)
      f(blocks.first(b), blocks.size(b), scratch.data(), out + b * c, out + (blocks.count + b) * c);
  });
  return results;
}

BatchNormSums add_blocks(const Tensor& per_block, DType dtype) {
  const std::int64_t count = per_block.shape()[1], c = per_block.shape()[2];
  BatchNormSums sums{empty({c}, {.dtype = dtype}), empty({c}, {.dtype = dtype})};
  const double* s = per_block.data<double>();
  visit_floating(dtype, "batch_norm", [&]<class A>() {
    for (std::int64_t j = 0; j < c; ++j) {
      double sum = 0, product = 0;
      for (std::int64_t b = 0; b < count; ++b) {
        sum += s[b * c + j];
        product += s[(count + b) * c + j];
      }
      sums.dy.data<A>()[j] = static_cast<A>(sum);
      sums.dy_xmu.data<A>()[j] = static_cast<A>(product);
    }
  });
  return sums;
}

}  // namespace lockstep::kernels
