// Cross-entropy on every device against the CPU's f64.
#include <gtest/gtest.h>

#include "lockstep/core/current_stream.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/cross_entropy.h"
#include "support/device.h"
#include "support/device_tolerance.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep::kernels {
namespace {

class CrossEntropyOnDevice : public testing::DeviceTest {
 protected:
  Tensor random(const Shape& shape, DType dtype = kF32) {
    return cast(randn(shape, generator_), dtype);
  }
  Tensor labels(const Shape& shape, std::int64_t classes, DType dtype, std::int64_t ignored) {
    const Tensor x = empty(shape, {kI64});
    for (std::int64_t i = 0; i < x.numel(); ++i)
      x.data<std::int64_t>()[i] = i % 5 == 3 ? ignored : i * 7 % classes;
    return cast(x, dtype);
  }
  Tensor far(const Tensor& t) const { return t.defined() ? to_device(t) : t; }

  void expect_like_f64(const Tensor& x, const Tensor& target, ClassLossOptions options, double t) {
    ClassLossOptions exact_options = options, there = options;
    if (options.weight.defined()) exact_options.weight = cast(options.weight, kF64);
    there.weight = far(options.weight);
    const Tensor exact_x = cast(x, kF64);
    const CrossEntropy got = cross_entropy_forward(far(x), far(target), there);
    const CrossEntropy want = cross_entropy_forward(exact_x, target, exact_options);
    EXPECT_EQ(got.loss.dtype(), x.dtype());
    EXPECT_EQ(got.loss.device(), device());
    EXPECT_CLOSE(cast(to_host(got.loss), kF64), want.loss, t, t);
    const Tensor dloss = random(got.loss.shape(), x.dtype());
    const Tensor dx = cross_entropy_backward(far(dloss), far(x), far(target), got.row_stats, there);
    EXPECT_EQ(dx.shape(), x.shape());
    EXPECT_CLOSE(
        cast(to_host(dx), kF64),
        cross_entropy_backward(cast(dloss, kF64), exact_x, target, want.row_stats, exact_options),
        t, t / 10);
  }

  Generator generator_{9};
};

TEST_P(CrossEntropyOnDevice, EveryDtypeAndNumberOfClasses) {
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    for (const std::int64_t classes : {1, 10, 16, 300, 1024, 3000}) {
      SCOPED_TRACE(fmt::format("{} {} classes", dtype_name(dtype), classes));
      expect_like_f64(random({7, classes}, dtype), labels({7}, classes, kI64, -100), {},
                      testing::device_tolerance(dtype));
    }
}

TEST_P(CrossEntropyOnDevice, EveryOption) {
  for (const Reduction reduction : {Reduction::kNone, Reduction::kMean, Reduction::kSum})
    for (const double smoothing : {0.0, 0.1, 1.0})
      for (const bool weighted : {false, true})
        for (const DType of_labels : {kI64, kI32, kU8}) {
          ClassLossOptions options;
          options.reduction = reduction;
          options.label_smoothing = smoothing;
          options.ignore_index = 2;
          if (weighted) options.weight = cast(tensor<double>({1, 2, 0.5, 0, 3, 1}), kF32);
          SCOPED_TRACE(fmt::format("smoothing {}, weighted {}", smoothing, weighted));
          expect_like_f64(random({9, 6}), labels({9}, 6, of_labels, 2), options, 1e-5);
        }
}

TEST_P(CrossEntropyOnDevice, MoreAxesAndOneRow) {
  ClassLossOptions none;
  none.reduction = Reduction::kNone;
  expect_like_f64(random({2, 5, 3, 4}), labels({2, 3, 4}, 5, kI64, -100), none, 1e-5);
  expect_like_f64(random({2, 5, 3, 4}).contiguous(MemoryFormat::kChannelsLast),
                  labels({2, 3, 4}, 5, kI64, -100), {}, 1e-5);
  expect_like_f64(random({8}), labels({}, 8, kI64, -100), {}, 1e-5);
}

TEST_P(CrossEntropyOnDevice, NothingCounts) {
  const Tensor x = far(random({3, 4})), ignored = far(full({3}, -100, {kI64}));
  const CrossEntropy all_ignored = cross_entropy_forward(x, ignored, {});
  EXPECT_EQ(all_ignored.loss.item(), 0.0);
  const Tensor one = far(full({}, 1));
  EXPECT_SAME_BITS(to_host(cross_entropy_backward(one, x, ignored, all_ignored.row_stats, {})),
                   zeros({3, 4}));
  const Tensor none = far(empty({0, 4})), no_labels = far(empty({0}, {kI64}));
  const CrossEntropy empty_batch = cross_entropy_forward(none, no_labels, {});
  EXPECT_EQ(empty_batch.loss.item(), 0.0);
  EXPECT_EQ(cross_entropy_backward(one, none, no_labels, empty_batch.row_stats, {}).shape(),
            (Shape{0, 4}));
}

// On a CUDA device the error comes with the next wait, and once.
TEST_P(CrossEntropyOnDevice, ALabelOutOfRangeIsNamed) {
  for (const std::int64_t label : {std::int64_t{4}, std::int64_t{-1}}) {
    const Tensor target = cast(tensor<double>({0, 3, static_cast<double>(label)}), kI64);
    const Tensor x = far(random({3, 4}));
    EXPECT_EQ(testing::message_of<Error>([&] {
                const CrossEntropy c = cross_entropy_forward(x, far(target), {});
                cross_entropy_backward(far(full({}, 1)), x, far(target), c.row_stats, {});
                c.loss.item();
              }),
              fmt::format("cross_entropy: target {} in row 2 is not one of the 4 classes (0 to 3) "
                          "and not ignore_index -100",
                          label));
    EXPECT_EQ(x.numel(), 12);
    if (device().is_cuda()) current_stream(device()).synchronize();
  }
}

TEST_P(CrossEntropyOnDevice, TwoDevicesAndWrongShapesAreRefused) {
  const Tensor x = far(random({3, 4}));
  EXPECT_EQ(
      testing::message_of<Error>([&] { cross_entropy_forward(x, far(zeros({2}, {kI64})), {}); }),
      "cross_entropy: scores of shape (3, 4) need targets of shape (3,) but got (2,)");
  EXPECT_THROW(cross_entropy_forward(x, far(zeros({3})), {}), Error);
  if (device().is_cpu()) return;
  EXPECT_THROW(cross_entropy_forward(x, zeros({3}, {kI64}), {}), Error);
}

LOCKSTEP_ON_ALL_DEVICES(CrossEntropyOnDevice);

}  // namespace
}  // namespace lockstep::kernels
