// Layer norm on every device, forward and backward, against f64 on the CPU.
#include <gtest/gtest.h>

#include "lockstep/core/random.h"
#include "lockstep/kernels/arithmetic.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/layer_norm.h"
#include "support/device.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using namespace kernels;

Tensor wide(const Tensor& t) { return t.defined() ? cast(t, kF64) : t; }

class LayerNormOnDevice : public testing::DeviceTest {
 protected:
  void expect_like_f64(const Shape& shape, int axes, DType dtype, DType parameters,
                       double tolerance) const {
    SCOPED_TRACE(shape.str() + " " + std::string(dtype_name(dtype)));
    Generator generator(5);
    Shape inner;
    for (int i = shape.rank() - axes; i < shape.rank(); ++i) inner.push_back(shape[i]);
    const Tensor x = cast(add(mul(randn(shape, generator), 2), 3), dtype),
                 dy = cast(randn(shape, generator), dtype),
                 weight = cast(add(randn(inner, generator), 1), parameters),
                 bias = cast(randn(inner, generator), parameters);
    expect_like_f64(x, dy, axes, weight, bias, tolerance);
  }

  void expect_like_f64(const Tensor& x, const Tensor& dy, int axes, const Tensor& weight,
                       const Tensor& bias, double tolerance) const {
    const LayerNorm exact = layer_norm_forward(wide(x), axes, wide(weight), wide(bias), 1e-5);
    const Tensor there = to_device(x), dy_there = to_device(dy);
    const auto moved = [&](const Tensor& t) { return t.defined() ? to_device(t) : t; };
    const Tensor w = moved(weight), b = moved(bias);
    const LayerNorm result = layer_norm_forward(there, axes, w, b, 1e-5);
    EXPECT_EQ(result.y.device(), device());
    EXPECT_EQ(result.y.dtype(), x.dtype());
    const double exactly = x.dtype() == kF64 ? 1e-12 : 1e-5;  // statistics are f32 for halves
    EXPECT_CLOSE(wide(to_host(result.y)), exact.y, tolerance, tolerance);
    EXPECT_CLOSE(wide(to_host(result.mean)), exact.mean, exactly, exactly);
    EXPECT_CLOSE(wide(to_host(result.rstd)), exact.rstd, exactly, 0);

    const LayerNormGradients got =
        layer_norm_gradients(dy_there, there, axes, w, b, result.mean, result.rstd,
                             {true, weight.defined(), bias.defined()});
    const double rows = static_cast<double>(exact.mean.numel());
    EXPECT_CLOSE(wide(to_host(got.dx)),
                 layer_norm_backward(wide(dy), wide(x), axes, wide(weight), exact.mean, exact.rstd),
                 tolerance, tolerance);
    if (weight.defined()) {
      EXPECT_EQ(got.dweight.dtype(), weight.dtype());
      EXPECT_CLOSE(
          wide(to_host(got.dweight)),
          layer_norm_backward_weight(wide(dy), wide(x), wide(weight), exact.mean, exact.rstd),
          tolerance, exactly * (4 + rows));
    }
    if (bias.defined()) {
      EXPECT_CLOSE(wide(to_host(got.dbias)), layer_norm_backward_bias(wide(dy), wide(bias)),
                   tolerance, exactly * (4 + rows) * 0.1);
    }
  }
};

TEST_P(LayerNormOnDevice, RowsOfAllLengths) {
  // Lanes of a warp, a warp, a block, shared memory; with and without 16-byte access.
  for (std::int64_t length :
       {1, 2, 3, 7, 20, 32, 33, 64, 100, 255, 256, 700, 1000, 1024, 1025, 3000})
    expect_like_f64({5, length}, 1, kF32, kF32, 2e-5);
  for (std::int64_t length : {8, 16, 72, 264, 512, 1000, 2056})
    expect_like_f64({5, length}, 1, kBF16, kF32, 1.6e-2);
}

TEST_P(LayerNormOnDevice, RowsTooLongForRegisters) {
  expect_like_f64({3, 8200}, 1, kF32, kF32, 2e-5);  // kept in shared memory
  expect_like_f64({2, 8201}, 1, kBF16, kBF16, 1.6e-2);
  expect_like_f64({2, 12100}, 1, kF32, kF32, 2e-5);  // read again
}

TEST_P(LayerNormOnDevice, EveryDtype) {
  for (std::int64_t length : {24, 31, 1200}) {
    expect_like_f64({7, length}, 1, kF64, kF64, 1e-12);
    expect_like_f64({7, length}, 1, kF16, kF16, 2e-3);
    expect_like_f64({7, length}, 1, kBF16, kBF16, 1.6e-2);
    expect_like_f64({7, length}, 1, kF16, kF32, 2e-3);
    expect_like_f64({7, length}, 1, kF32, kF16, 2e-3);
  }
}

TEST_P(LayerNormOnDevice, ManyRows) {
  // More than all blocks take at once.
  expect_like_f64({2100, 17}, 1, kF32, kF32, 1e-4);
  expect_like_f64({200, 40}, 1, kBF16, kF32, 1.6e-2);
}

TEST_P(LayerNormOnDevice, SeveralAxesAndLayouts) {
  expect_like_f64({3, 4, 5, 6}, 2, kF32, kF32, 2e-5);
  expect_like_f64({3, 4, 5, 6}, 3, kF32, kF32, 2e-5);
  expect_like_f64({4, 10}, 2, kF32, kF32, 2e-5);
  Generator generator(2);
  const Tensor x = randn({4, 6, 5, 8}, generator), dy = randn({4, 6, 5, 8}, generator);
  const Tensor weight = randn({8}, generator), bias = randn({8}, generator);
  expect_like_f64(x.contiguous(MemoryFormat::kChannelsLast), dy, 1, weight, bias, 2e-5);
  expect_like_f64(x.transpose(0, 1), dy.transpose(0, 1), 1, weight, bias, 2e-5);
  // Contiguous, but begins within 16 bytes.
  const Tensor all = randn({65}, generator);
  expect_like_f64(all.slice(0, 1, 65).view({8, 8}), all.slice(0, 0, 64).view({8, 8}), 1, weight,
                  bias, 2e-5);
}

TEST_P(LayerNormOnDevice, WithoutParameters) {
  Generator generator(3);
  const Tensor x = randn({6, 48}, generator), dy = randn({6, 48}, generator);
  const Tensor p = randn({48}, generator);
  expect_like_f64(x, dy, 1, {}, {}, 2e-5);
  expect_like_f64(x, dy, 1, p, {}, 2e-5);
  expect_like_f64(x, dy, 1, {}, p, 2e-5);
  const Tensor there = to_device(x), dy_there = to_device(dy), w = to_device(p);
  const LayerNorm y = layer_norm_forward(there, 1, w, w, 1e-5);
  const LayerNormGradients all = layer_norm_gradients(dy_there, there, 1, w, w, y.mean, y.rstd, {});
  // Alone or together, and each time: the same bits.
  EXPECT_SAME_BITS(to_host(layer_norm_backward(dy_there, there, 1, w, y.mean, y.rstd)),
                   to_host(all.dx));
  EXPECT_SAME_BITS(to_host(layer_norm_backward_weight(dy_there, there, w, y.mean, y.rstd)),
                   to_host(all.dweight));
  EXPECT_CLOSE(to_host(layer_norm_backward_bias(dy_there, w)), to_host(all.dbias), 1e-5, 1e-5);
  const LayerNormGradients none =
      layer_norm_gradients(dy_there, there, 1, w, w, y.mean, y.rstd, {false, false, false});
  EXPECT_FALSE(none.dx.defined() || none.dweight.defined() || none.dbias.defined());
}

TEST_P(LayerNormOnDevice, ALargeMeanCostsNoPrecision) {
  Generator generator(4);
  const Tensor x = add(randn({3, 300}, generator), 1000), dy = randn({3, 300}, generator);
  const Tensor exact = layer_norm_forward(wide(x), 1, {}, {}, 1e-5).y;
  EXPECT_CLOSE(wide(to_host(layer_norm_forward(to_device(x), 1, {}, {}, 1e-5).y)), exact, 0, 2e-4);
}

TEST_P(LayerNormOnDevice, Nothing) {
  const Tensor w = to_device(full({4}, 1));
  const Tensor x = to_device(empty({0, 4}));
  const LayerNorm y = layer_norm_forward(x, 1, w, w, 1e-5);
  EXPECT_EQ(y.y.shape(), (Shape{0, 4}));
  const LayerNormGradients got = layer_norm_gradients(x, x, 1, w, w, y.mean, y.rstd, {});
  EXPECT_SAME_BITS(to_host(got.dweight), zeros({4}));
  EXPECT_SAME_BITS(to_host(got.dbias), zeros({4}));
  const Tensor none = to_device(empty({3, 0}));
  EXPECT_EQ(to_host(layer_norm_forward(none, 1, {}, {}, 1e-5).mean).shape(), Shape{3});
  EXPECT_THROW(layer_norm_forward(to_device(empty({2, 3})), 1, w, {}, 1e-5), Error);
}

LOCKSTEP_ON_ALL_DEVICES(LayerNormOnDevice);

}  // namespace
}  // namespace lockstep
