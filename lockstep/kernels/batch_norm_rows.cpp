#include "lockstep/kernels/batch_norm_rows.h"

#include "lockstep/core/check.h"
#include "lockstep/kernels/image_layout.h"

namespace lockstep::kernels {

ChannelRows channel_rows(const Tensor& x) {
  LOCKSTEP_CHECK(x.defined() && x.dim() >= 2 && x.dim() <= 4,
                 "batch_norm: expected (N, C), (N, C, L) or (N, C, H, W) but got {}",
                 x.defined() ? x.shape().str() : "an undefined tensor");
  const std::int64_t c = x.shape()[1];
  const std::int64_t rows = c == 0 ? 0 : x.numel() / c;
  if (x.dim() == 2) return {x.contiguous(), rows, c};
  if (x.dim() == 4) return {channels_last(x, "batch_norm"), rows, c};
  return {x.transpose(1, 2).contiguous().transpose(1, 2), rows, c};
}

Tensor empty_channel_rows(const Tensor& x) {
  const Shape& s = x.shape();
  if (x.dim() == 3) return empty({s[0], s[2], s[1]}, {x.dtype(), x.device()}).transpose(1, 2);
  return empty(s, {x.dtype(), x.device(), MemoryFormat::kChannelsLast});
}

}  // namespace lockstep::kernels
