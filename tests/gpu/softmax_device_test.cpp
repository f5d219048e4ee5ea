#include <gtest/gtest.h>

#include <limits>

#include "lockstep/core/random.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/softmax.h"
#include "support/device.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using namespace kernels;

constexpr double kInf = std::numeric_limits<double>::infinity();

class SoftmaxOnDevice : public testing::DeviceTest {
 protected:
  // The CPU's f64 result is the oracle.
  void expect_like_f64(const Shape& shape, int axis, DType dtype, double tolerance) const {
    Generator generator(7);
    const Tensor x = cast(randn(shape, generator), dtype),
                 dy = cast(randn(shape, generator), dtype);
    const Tensor exact_x = cast(x, kF64), exact_dy = cast(dy, kF64);
    const Tensor there = to_device(x), dy_there = to_device(dy);

    const Tensor y = softmax_forward(there, axis);
    const Tensor exact_y = softmax_forward(exact_x, axis);
    EXPECT_EQ(y.device(), device());
    EXPECT_CLOSE(cast(to_host(y), kF64), exact_y, tolerance, tolerance * 1e-2);
    EXPECT_CLOSE(
        cast(to_host(softmax_backward(dy_there, to_device(cast(exact_y, dtype)), axis)), kF64),
        softmax_backward(exact_dy, cast(cast(exact_y, dtype), kF64), axis), tolerance, tolerance);

    const Tensor log_y = log_softmax_forward(there, axis);
    const Tensor exact_log_y = log_softmax_forward(exact_x, axis);
    EXPECT_CLOSE(cast(to_host(log_y), kF64), exact_log_y, tolerance, tolerance);
    EXPECT_CLOSE(
        cast(to_host(log_softmax_backward(dy_there, to_device(cast(exact_log_y, dtype)), axis)),
             kF64),
        log_softmax_backward(exact_dy, cast(cast(exact_log_y, dtype), kF64), axis), tolerance,
        tolerance * 4);
  }
};

TEST_P(SoftmaxOnDevice, RowsOfAllLengths) {
  for (std::int64_t length : {1, 3, 32, 33, 100, 256, 300, 700, 1024, 1025, 2500})
    expect_like_f64({3, length}, 1, kF32, 1e-5);
  // Rows of whole vectors: several to a warp, one to a warp, in shared memory, too long for it.
  for (std::int64_t length : {8, 24, 64, 128, 512, 1024, 2048, 14000})
    for (DType dtype : {kF32, kBF16})
      expect_like_f64({7, length}, 1, dtype, dtype == kF32 ? 1e-5 : 1.6e-2);
}

TEST_P(SoftmaxOnDevice, EveryDtype) {
  expect_like_f64({5, 10}, 1, kF64, 1e-12);
  expect_like_f64({5, 10}, 1, kF16, 2e-3);
  expect_like_f64({5, 10}, 1, kBF16, 1.6e-2);
  expect_like_f64({2, 1100}, 1, kF16, 2e-3);
}

TEST_P(SoftmaxOnDevice, AnyAxis) {
  expect_like_f64({4, 5, 6}, 0, kF32, 1e-5);
  expect_like_f64({4, 5, 6}, 1, kF32, 1e-5);
}

TEST_P(SoftmaxOnDevice, EmptyAndScalar) {
  EXPECT_EQ(softmax_forward(to_device(empty({0, 3})), 1).shape(), (Shape{0, 3}));
  EXPECT_EQ(softmax_forward(to_device(empty({3, 0})), 1).shape(), (Shape{3, 0}));
  EXPECT_EQ(softmax_forward(to_device(full({}, 5)), 0).item(), 1.0);
}

TEST_P(SoftmaxOnDevice, InfinitiesAndNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x =
      cast(tensor<double>({0, -kInf, 0, nan, 1, 2, kInf, 0, 0, -kInf, -kInf, -kInf}, {4, 3}), kF32);
  const Tensor wanted = cast(
      tensor<double>({0.5, 0, 0.5, nan, nan, nan, nan, nan, nan, nan, nan, nan}, {4, 3}), kF32);
  EXPECT_CLOSE(to_host(softmax_forward(to_device(x), 1)), wanted, 1e-6, 0);
}

LOCKSTEP_ON_ALL_DEVICES(SoftmaxOnDevice);

}  // namespace
}  // namespace lockstep
