// Images, sequences and vectors as one matrix (rows, C) in memory. Internal.
#pragma once

#include "lockstep/core/tensor.h"

namespace lockstep::kernels {

struct ChannelRows {
  Tensor x;  // C innermost in memory
  std::int64_t rows, c;
};

// Of (N, C), (N, C, L) or (N, C, H, W); copied where C is not innermost.
ChannelRows channel_rows(const Tensor& x);

// A new tensor of x's shape whose memory is in the order of channel_rows.
Tensor empty_channel_rows(const Tensor& x);

}  // namespace lockstep::kernels
