// Convolutions on every device against the CPU's f64.
#include <gtest/gtest.h>

#include "lockstep/core/random.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/conv2d.h"
#include "lockstep/kernels/image_layout.h"
#include "support/device.h"
#include "support/device_tolerance.h"
#include "support/expect_close.h"
#include "support/message.h"

namespace lockstep::kernels {
namespace {

struct ConvCase {
  const char* name;
  Shape x, w;
  Conv2dOptions options;
};

std::vector<ConvCase> cases() {
  std::vector<ConvCase> all = {
      {"one channel, as in Toy_Net", {2, 1, 9, 9}, {8, 1, 3, 3}, {}},
      {"quads of channels", {2, 8, 7, 6}, {12, 8, 3, 3}, {}},
      {"odd channels", {3, 5, 6, 7}, {7, 5, 3, 2}, {}},
      {"a window of one", {2, 16, 5, 5}, {8, 16, 1, 1}, {}},
      {"one pixel", {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {"many pixels to one weight", {40, 4, 8, 8}, {4, 4, 3, 3}, {}},
      {"windows and weights of several tiles", {1, 12, 14, 12}, {70, 12, 3, 3}, {}},
  };
  ConvCase strided{"stride, padding, dilation", {2, 4, 11, 10}, {8, 4, 3, 3}, {}};
  strided.options.stride[0] = 2;
  strided.options.stride[1] = 3;
  strided.options.padding[0] = 1;
  strided.options.padding[1] = 2;
  strided.options.dilation[0] = 2;
  all.push_back(strided);
  ConvCase groups{"groups", {2, 8, 6, 6}, {16, 4, 3, 3}, {}};
  groups.options.groups = 2;
  groups.options.padding[0] = groups.options.padding[1] = 1;
  all.push_back(groups);
  ConvCase depthwise{"one channel to a group", {2, 6, 6, 6}, {6, 1, 3, 3}, {}};
  depthwise.options.groups = 6;
  all.push_back(depthwise);
  return all;
}

using testing::device_tolerance;

class ConvOnDevice : public testing::DeviceTest {
 protected:
  Tensor random(const Shape& shape, DType dtype) { return cast(randn(shape, generator_), dtype); }
  void expect_close(const Tensor& got, const Tensor& exact, DType dtype, std::int64_t terms) const {
    EXPECT_EQ(got.device(), device());
    EXPECT_EQ(got.dtype(), dtype);
    EXPECT_CLOSE(cast(to_host(got), kF64), exact, device_tolerance(dtype),
                 device_tolerance(dtype) * std::sqrt(static_cast<double>(terms)));
  }
  // By the library and by our own kernels.
  void expect_like_f64(const ConvCase& given, DType dtype) {
    ConvCase own = given;
    own.options.algorithm = ConvAlgorithm::kGemm;
    expect_so_like_f64(own, dtype);
    if (device().is_cuda()) expect_so_like_f64(given, dtype);
  }
  void expect_so_like_f64(const ConvCase& c, DType dtype) {
    SCOPED_TRACE(std::string(c.name) + " " + std::string(dtype_name(dtype)));
    const Tensor x = random(c.x, dtype).contiguous(MemoryFormat::kChannelsLast);
    const Tensor w = random(c.w, dtype), b = random({c.w[0]}, dtype);
    const Tensor dy =
        random(conv2d_shape(c.x, c.w, c.options), dtype).contiguous(MemoryFormat::kChannelsLast);
    const auto wide = [](const Tensor& t) { return cast(t, kF64); };
    const Tensor far_x = to_device(x), far_w = to_device(w), far_b = to_device(b);
    const Tensor far_dy = to_device(dy);
    const std::int64_t taps = c.w[1] * c.w[2] * c.w[3], pixels = dy.numel() / c.w[0];
    const std::uint64_t reorders = activation_reorders();
    const Tensor y = conv2d_forward(far_x, far_w, far_b, c.options, true);
    EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast));
    expect_close(y, conv2d_forward(wide(x), wide(w), wide(b), c.options, true), dtype, taps);
    expect_close(conv2d_forward(far_x, far_w, Tensor(), c.options),
                 conv2d_forward(wide(x), wide(w), Tensor(), c.options), dtype, taps);
    expect_close(conv2d_backward_data(far_dy, far_w, c.x, c.options),
                 conv2d_backward_data(wide(dy), wide(w), c.x, c.options), dtype,
                 c.w[0] * c.w[2] * c.w[3]);
    const auto got = conv2d_backward_weights(far_dy, far_x, c.w, true, c.options);
    const auto exact = conv2d_backward_weights(wide(dy), wide(x), c.w, true, c.options);
    EXPECT_TRUE(got.dw.is_contiguous());
    expect_close(got.dw, exact.dw, dtype, pixels);
    expect_close(got.db, exact.db, dtype, pixels);
    EXPECT_EQ(activation_reorders(), reorders);
  }

  Generator generator_{5};
};

TEST_P(ConvOnDevice, EveryCaseInF32) {
  for (const ConvCase& c : cases()) expect_like_f64(c, kF32);
}

TEST_P(ConvOnDevice, EveryDtype) {
  for (const DType dtype : {kF64, kF16, kBF16})
    for (const ConvCase& c : {cases()[0], cases()[1], cases()[8]}) expect_like_f64(c, dtype);
}

// Two runs give the same bits.
TEST_P(ConvOnDevice, SumsHaveOneOrder) {
  const Tensor x = to_device(random({20, 4, 8, 8}, kF32)),
               dy = to_device(random({20, 4, 6, 6}, kF32));
  const auto first = conv2d_backward_weights(dy, x, {4, 4, 3, 3}, true);
  const auto second = conv2d_backward_weights(dy, x, {4, 4, 3, 3}, true);
  EXPECT_SAME_BITS(to_host(first.dw), to_host(second.dw));
  EXPECT_SAME_BITS(to_host(first.db), to_host(second.db));
}

TEST_P(ConvOnDevice, NothingInIt) {
  const Tensor none = to_device(empty({0, 3, 5, 5})), w = to_device(random({2, 3, 3, 3}, kF32));
  EXPECT_EQ(conv2d_forward(none, w, Tensor()).shape(), (Shape{0, 2, 3, 3}));
  const Tensor no_channels = to_device(empty({1, 0, 5, 5}));
  const Tensor b = to_device(full({2}, 3));
  EXPECT_SAME_BITS(to_host(conv2d_forward(no_channels, to_device(empty({2, 0, 3, 3})), b)),
                   full({1, 2, 3, 3}, 3).contiguous(MemoryFormat::kChannelsLast));
  const auto gradients =
      conv2d_backward_weights(to_device(empty({0, 2, 3, 3})), none, {2, 3, 3, 3}, true);
  EXPECT_SAME_BITS(to_host(gradients.dw), zeros({2, 3, 3, 3}));
  EXPECT_SAME_BITS(to_host(gradients.db), zeros({2}));
}

TEST_P(ConvOnDevice, TwoDevicesAreRefused) {
  if (device().is_cpu()) GTEST_SKIP() << "there is only one CPU";
  const Tensor x = random({1, 1, 3, 3}, kF32), w = random({1, 1, 3, 3}, kF32);
  EXPECT_THROW(conv2d_forward(to_device(x), w, Tensor()), Error);
}

LOCKSTEP_ON_ALL_DEVICES(ConvOnDevice);

}  // namespace
}  // namespace lockstep::kernels
