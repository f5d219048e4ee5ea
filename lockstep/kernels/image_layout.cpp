#include "lockstep/kernels/image_layout.h"

#include <atomic>

#include "lockstep/core/check.h"

namespace lockstep::kernels {
namespace {

std::atomic<std::uint64_t> reorders{0};

}  // namespace

Tensor channels_last(const Tensor& x, const char* op) {
  LOCKSTEP_CHECK(x.defined() && x.dim() == 4, "{}: expected images (N, C, H, W) but got {}", op,
                 x.defined() ? x.shape().str() : "an undefined tensor");
  if (x.is_contiguous(MemoryFormat::kChannelsLast)) return x;
  reorders.fetch_add(1, std::memory_order_relaxed);
  return x.contiguous(MemoryFormat::kChannelsLast);
}

std::uint64_t activation_reorders() { return reorders.load(std::memory_order_relaxed); }

}  // namespace lockstep::kernels
