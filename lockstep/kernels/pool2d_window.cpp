#include "lockstep/kernels/pool2d_window.h"

#include "lockstep/core/check.h"

namespace lockstep::kernels {

Shape pool2d_shape(const Shape& x, const Pool2dOptions& o, const char* op) {
  LOCKSTEP_CHECK(x.rank() == 4, "{}: expected images (N, C, H, W) but got {}", op, x);
  Shape y{x[0], x[1], 0, 0};
  for (int i = 0; i < 2; ++i) {
    LOCKSTEP_CHECK(o.kernel[i] >= 1 && o.stride[i] >= 1 && o.dilation[i] >= 1,
                   "{}: expected kernel, stride and dilation of at least 1 but got {}, {} and {}",
                   op, o.kernel[i], o.stride[i], o.dilation[i]);
    LOCKSTEP_CHECK(o.padding[i] >= 0 && 2 * o.padding[i] <= o.kernel[i],
                   "{}: expected padding between 0 and half the kernel {} but got {}", op,
                   o.kernel[i], o.padding[i]);
    const std::int64_t size = x[2 + i];
    const std::int64_t room = size + 2 * o.padding[i] - o.dilation[i] * (o.kernel[i] - 1) - 1;
    LOCKSTEP_CHECK(room >= 0,
                   "{}: a window of {} with dilation {} is larger than images {} with "
                   "padding {}",
                   op, o.kernel[i], o.dilation[i], x, o.padding[i]);
    std::int64_t count = (room + (o.ceil_mode ? o.stride[i] - 1 : 0)) / o.stride[i] + 1;
    if (o.ceil_mode && (count - 1) * o.stride[i] >= size + o.padding[i]) --count;
    y[2 + i] = count;
  }
  return y;
}

}  // namespace lockstep::kernels
