#include "lockstep/kernels/gemm.h"

#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/device_check.h"
#include "lockstep/kernels/gemm_cuda.h"
#include "lockstep/kernels/gemm_simd.h"

namespace lockstep::kernels {
namespace {

// Our own blocked product. Threads divide C by rows or by columns; the order of every sum is the
// same whichever it is.
template <class T>
void gemm_blocked(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate) {
  const GemmKernels& kernels = gemm_kernels();
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  const bool by_rows = m >= n;
  const std::int64_t extent = by_rows ? m : n;
  const std::int64_t tile = by_rows ? kernels.tile_m : kernels.tile_n;
  const std::int64_t tiles = (extent + tile - 1) / tile;
  constexpr double kFlopsWorthAThread = 4e5;
  const double flops_per_tile = 2.0 * m * n * k / tiles;
  const auto grain = static_cast<std::int64_t>(kFlopsWorthAThread / flops_per_tile) + 1;
  parallel_for(tiles, grain, [&](std::int64_t begin, std::int64_t end) {
    const Tensor workspace = empty({kernels.workspace_bytes}, {.dtype = kU8});
    GemmBlock<T> block{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.data<T>(),
                       .b = b.data<T>(),
                       .c = c.data<T>(),
                       .a_row = a.strides()[0],
                       .a_col = a.strides()[1],
                       .b_row = b.strides()[0],
                       .b_col = b.strides()[1],
                       .c_row = c.strides()[0],
                       .accumulate = accumulate};
    const std::int64_t first = begin * tile, last = std::min(extent, end * tile);
    if (by_rows) {
      block.a += first * block.a_row;
      block.c += first * block.c_row;
      block.m = last - first;
    } else {
      block.b += first * block.b_col;
      block.c += first;
      block.n = last - first;
    }
    if constexpr (std::is_same_v<T, float>)
      kernels.f32(block, workspace.data());
    else
      kernels.f64(block, workspace.data());
  });
}

void gemm_f32(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate) {
  if (!gemm_f32_library(a, b, c, accumulate)) gemm_blocked<float>(a, b, c, accumulate);
}

void gemm_half(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate) {
  if (c.dtype() == kBF16 && gemm_bf16_library(a, b, c, accumulate)) return;
  const Tensor sum = accumulate ? cast(c, kF32).clone() : empty(c.shape());
  gemm_f32(cast(a, kF32), cast(b, kF32), sum, accumulate);
  copy_elements(c, cast(sum, c.dtype()));
}

}  // namespace

void gemm(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulate) {
  LOCKSTEP_CHECK(a.dim() == 2 && b.dim() == 2 && c.dim() == 2 && a.shape()[1] == b.shape()[0] &&
                     c.shape()[0] == a.shape()[0] && c.shape()[1] == b.shape()[1],
                 "gemm: shapes {} and {} do not give {}", a.shape(), b.shape(), c.shape());
  LOCKSTEP_CHECK(a.dtype() == b.dtype() && a.dtype() == c.dtype() && is_floating(a.dtype()),
                 "gemm: expected one floating dtype but got {}, {} and {}", a.dtype(), b.dtype(),
                 c.dtype());
  LOCKSTEP_CHECK(c.shape()[1] <= 1 || c.strides()[1] == 1,
                 "gemm: rows of the result must be contiguous, got strides {}", c.strides());
  c.bump_version();
  if (c.numel() == 0) return;
  if (a.shape()[1] == 0) {
    if (!accumulate) zero_(c);
    return;
  }
  if constexpr (kHasCuda)
    if (common_device("gemm", {&a, &b, &c}).is_cuda())
      return cuda::gemm({.a = a, .b = b, .c = c, .accumulate = accumulate});
  switch (c.dtype()) {
    case DType::kF64:
      return gemm_blocked<double>(a, b, c, accumulate);
    case DType::kF32:
      return gemm_f32(a, b, c, accumulate);
    default:
      return gemm_half(a, b, c, accumulate);
  }
}

}  // namespace lockstep::kernels
