#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/accumulate.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/device_check.h"

namespace lockstep::kernels {
namespace {

template <class T>
void add_run(std::int64_t n, T* dst, std::int64_t ds, const T* src, std::int64_t ss) {
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
  if (ds == 1 && ss == 1) {
    for (std::int64_t i = 0; i < n; ++i)
      dst[i] = static_cast<T>(static_cast<A>(dst[i]) + static_cast<A>(src[i]));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
    dst[i * ds] = static_cast<T>(static_cast<A>(dst[i * ds]) + static_cast<A>(src[i * ss]));
}

template <class T>
void add_axis(const Tensor& dst, const Tensor& src, int axis, T* d, const T* s) {
  const std::int64_t n = dst.shape()[axis];
  if (axis == dst.dim() - 1) return add_run(n, d, dst.strides()[axis], s, src.strides()[axis]);
  for (std::int64_t i = 0; i < n; ++i)
    add_axis(dst, src, axis + 1, d + i * dst.strides()[axis], s + i * src.strides()[axis]);
}

}  // namespace

void accumulate(const Tensor& dst, const Tensor& src) {
  LOCKSTEP_CHECK(dst.dtype() == src.dtype() && dst.shape() == src.shape(),
                 "accumulate: expected two gradients alike but got {} {} and {} {}", dst.dtype(),
                 dst.shape(), src.dtype(), src.shape());
  if constexpr (kHasCuda)
    if (common_device("accumulate", {&dst, &src}).is_cuda()) return add_into(dst, dst, src);
  dst.bump_version();
  const std::int64_t n = dst.numel();
  if (n == 0) return;
  visit_floating(dst.dtype(), "accumulate", [&]<class T>() {
    const bool one_run = (dst.is_dense() && dst.strides() == src.strides()) || dst.dim() == 0;
    if (one_run)
      add_run(n, dst.data<T>(), 1, src.data<T>(), 1);
    else
      add_axis(dst, src, 0, dst.data<T>(), src.data<T>());
  });
}

}  // namespace lockstep::kernels
