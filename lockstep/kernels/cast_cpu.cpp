#include "lockstep/kernels/cast.h"

#include <algorithm>

#include "lockstep/core/check.h"
#include "lockstep/core/config.h"
#include "lockstep/core/tensor_transfer.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/cast_cuda.h"
#include "lockstep/kernels/convert.h"
#include "lockstep/kernels/loop_plan.h"

namespace lockstep::kernels {
namespace {

constexpr std::int64_t kChunk = 32768;

void convert_elements(const Tensor& dst, const Tensor& src) {
  if (dst.device() != src.device()) return convert_elements(dst, src.to(dst.device()));
  if constexpr (kHasCuda)
    if (dst.device().is_cuda()) return cuda::convert(dst, src);
  const PlanOperand operands[] = {{&dst.shape(), &dst.strides()}, {&src.shape(), &src.strides()}};
  const LoopPlan plan = plan_loop(dst.shape(), operands);
  const ConvertRun convert = convert_run(src.dtype(), dst.dtype());
  const auto d_size = static_cast<std::int64_t>(dst.itemsize());
  const auto s_size = static_cast<std::int64_t>(src.itemsize());
  const std::int64_t run = plan.run(), ds = plan.stride[0][0], ss = plan.stride[0][1];
  char* d = static_cast<char*>(dst.data());
  const char* s = static_cast<const char*>(src.data());
  const std::int64_t pieces = (run + kChunk - 1) / kChunk;
  const std::int64_t grain = std::max<std::int64_t>(kChunk / std::min(run, kChunk), 1);
  parallel_for(plan.rows() * pieces, grain, [&](std::int64_t first, std::int64_t last) {
    std::int64_t row = first / pieces, piece = first % pieces;
    RowCursor at(plan, row);
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = piece * kChunk;
      convert(s + (at.offset(1) + begin * ss) * s_size, ss,
              d + (at.offset(0) + begin * ds) * d_size, ds, std::min(kChunk, run - begin));
      if (++piece == pieces) {
        piece = 0;
        at.next();
      }
    }
  });
}

}  // namespace

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = empty_like(x, dtype);
  if (x.numel() > 0) convert_elements(y, x);
  return y;
}

void copy_into(const Tensor& dst, const Tensor& src) {
  LOCKSTEP_CHECK(broadcast_shapes(dst.shape(), src.shape(), "copy") == dst.shape(),
                 "copy: a source of shape {} does not broadcast to {}", src.shape(), dst.shape());
  dst.bump_version();
  if (dst.numel() == 0) return;
  convert_elements(dst, src.shares_storage_with(dst) ? src.clone() : src);
}

void fill(const Tensor& x, Scalar value) {
  x.bump_version();
  if (x.numel() == 0) return;
  const bool integer = value.is_integer() && !is_floating(x.dtype());
  Tensor one =
      integer ? tensor<std::int64_t>({value.integer()}, {}) : full({}, value.real(), {kF64});
  one = cast(one, x.dtype());
  // The element goes with the launch: nothing waits, and the fill can be captured.
  if (x.device().is_cuda()) return detail::fill_on_device(x, one.data());
  convert_elements(x, one);
}

}  // namespace lockstep::kernels
