// Max, average and adaptive average pooling against their formulas.
#include <cmath>

#include "kernels/dense_oracle.h"
#include "lockstep/core/error.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/avg_pool2d.h"
#include "lockstep/kernels/image_layout.h"
#include "lockstep/kernels/max_pool2d.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using kernels::AvgPool2dOptions;
using kernels::Pool2dOptions;
using testing::Images;
using testing::random_tensor;

std::vector<std::pair<Shape, Pool2dOptions>> cases() {
  return {
      {{2, 3, 8, 8}, {}},
      {{2, 128, 6, 6}, {}},
      {{2, 70, 7, 9}, {}},  // a row and a column are in no window
      {{1, 3, 7, 7}, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}},
      {{2, 65, 9, 8}, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}}},
      {{1, 5, 9, 9}, {.kernel = {2, 3}, .stride = {2, 2}, .padding = {1, 1}, .dilation = {2, 2}}},
      {{1, 4, 5, 5}, {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true}},
      {{2, 4, 6, 6}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true}},
      {{3, 1, 1, 1}, {.kernel = {1, 1}, .stride = {1, 1}}},
      {{1, 2, 16, 16}, {.kernel = {16, 16}, .stride = {16, 16}}},
      {{1, 3, 6, 6}, {.kernel = {2, 2}, .stride = {3, 3}}},  // gaps between windows
  };
}

// Calls f(n, c, p, q, y, x) for every position of every window inside the image.
template <class F>
void for_each_position(const Shape& xs, const Shape& ys, const Pool2dOptions& o, const F& f) {
  for (std::int64_t n = 0; n < ys[0]; ++n)
    for (std::int64_t c = 0; c < ys[1]; ++c)
      for (std::int64_t p = 0; p < ys[2]; ++p)
        for (std::int64_t q = 0; q < ys[3]; ++q)
          for (std::int64_t r = 0; r < o.kernel[0]; ++r)
            for (std::int64_t s = 0; s < o.kernel[1]; ++s) {
              const std::int64_t y = p * o.stride[0] - o.padding[0] + r * o.dilation[0];
              const std::int64_t x = q * o.stride[1] - o.padding[1] + s * o.dilation[1];
              if (y >= 0 && y < xs[2] && x >= 0 && x < xs[3]) f(n, c, p, q, y, x);
            }
}

class Pool2d : public ::testing::TestWithParam<DType> {};

TEST_P(Pool2d, MaxAndItsGradient) {
  for (const auto& [shape, o] : cases()) {
    SCOPED_TRACE(shape.str());
    const Tensor x = random_tensor(shape, 1, GetParam());
    const Shape ys = kernels::pool2d_shape(shape, o, "test");
    const Tensor dy = random_tensor(ys, 2, GetParam());
    const Images in{testing::to_f64(x)}, g{testing::to_f64(dy)};
    const Images y{full(ys, -INFINITY, {.dtype = kF64})}, dx{zeros(shape, {.dtype = kF64})};
    for_each_position(shape, ys, o, [&](auto n, auto c, auto p, auto q, auto iy, auto ix) {
      y.at(n, c, p, q) = std::max(y.at(n, c, p, q), in.at(n, c, iy, ix));
    });
    const Images open{ones(ys, {.dtype = kF64})};  // until a window's first maximum was met
    for_each_position(shape, ys, o, [&](auto n, auto c, auto p, auto q, auto iy, auto ix) {
      if (open.at(n, c, p, q) == 0 || in.at(n, c, iy, ix) != y.at(n, c, p, q)) return;
      open.at(n, c, p, q) = 0;
      dx.at(n, c, iy, ix) += g.at(n, c, p, q);
    });
    for (MemoryFormat format : {MemoryFormat::kChannelsLast, MemoryFormat::kContiguous}) {
      const auto result = kernels::max_pool2d_forward(x, o, format);
      EXPECT_TRUE(result.y.is_contiguous(format));
      EXPECT_CLOSE(result.y, y.t, 0, 0);
      EXPECT_EQ(result.taps.dtype(), kU8);
      const auto t = testing::tolerance(GetParam(), 9);
      for (const Tensor& gradient : {dy, dy.contiguous(MemoryFormat::kChannelsLast)})
        EXPECT_CLOSE(kernels::max_pool2d_backward(gradient, result.taps, shape, o), dx.t,
                     t.relative, t.absolute);
    }
  }
}

TEST_P(Pool2d, AverageAndItsGradient) {
  for (auto [shape, o] : cases()) {
    if (o.dilation[0] != 1) continue;
    for (const bool count_pad : {true, false})
      for (const std::int64_t divisor : {0, 5}) {
        SCOPED_TRACE(shape.str());
        const AvgPool2dOptions options{o, count_pad, divisor};
        const Tensor x = random_tensor(shape, 1, GetParam());
        const Shape ys = kernels::pool2d_shape(shape, o, "test");
        const Tensor dy = random_tensor(ys, 2, GetParam());
        const Images in{testing::to_f64(x)}, g{testing::to_f64(dy)};
        const Images y{zeros(ys, {.dtype = kF64})}, dx{zeros(shape, {.dtype = kF64})},
            count{zeros(ys, {.dtype = kF64})};
        for_each_position(shape, ys, o, [&](auto n, auto c, auto p, auto q, auto, auto) {
          count.at(n, c, p, q) += 1;
        });
        const auto divisor_at = [&](auto n, auto c, auto p, auto q) -> double {
          if (divisor > 0) return static_cast<double>(divisor);
          if (!count_pad) return count.at(n, c, p, q);
          const auto along = [&](int axis, std::int64_t i) {
            const std::int64_t begin = i * o.stride[axis] - o.padding[axis];
            return std::min(begin + o.kernel[axis], shape[2 + axis] + o.padding[axis]) - begin;
          };
          return static_cast<double>(along(0, p) * along(1, q));
        };
        for_each_position(shape, ys, o, [&](auto n, auto c, auto p, auto q, auto iy, auto ix) {
          y.at(n, c, p, q) += in.at(n, c, iy, ix) / divisor_at(n, c, p, q);
          dx.at(n, c, iy, ix) += g.at(n, c, p, q) / divisor_at(n, c, p, q);
        });
        const auto t = testing::tolerance(GetParam(), 4);
        EXPECT_CLOSE(kernels::avg_pool2d_forward(x, options), y.t, t.relative, t.absolute);
        EXPECT_CLOSE(kernels::avg_pool2d_backward(dy, shape, options), dx.t, t.relative,
                     t.absolute);
      }
  }
}

TEST_P(Pool2d, AdaptiveAverageAndItsGradient) {
  const Shape shape{2, 5, 7, 10};
  for (const auto& [p, q] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {7, 10}, {3, 4}, {2, 5}, {9, 13}}) {
    const Tensor x = random_tensor(shape, 1, GetParam());
    const Tensor dy = random_tensor({2, 5, p, q}, 2, GetParam());
    const Images in{testing::to_f64(x)}, g{testing::to_f64(dy)};
    const Images y{zeros({2, 5, p, q}, {.dtype = kF64})}, dx{zeros(shape, {.dtype = kF64})};
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t c = 0; c < 5; ++c)
        for (std::int64_t i = 0; i < p; ++i)
          for (std::int64_t j = 0; j < q; ++j) {
            const auto y0 = static_cast<std::int64_t>(std::floor(double(i) * 7 / p));
            const auto y1 = static_cast<std::int64_t>(std::ceil(double(i + 1) * 7 / p));
            const auto x0 = static_cast<std::int64_t>(std::floor(double(j) * 10 / q));
            const auto x1 = static_cast<std::int64_t>(std::ceil(double(j + 1) * 10 / q));
            const double area = static_cast<double>((y1 - y0) * (x1 - x0));
            for (std::int64_t iy = y0; iy < y1; ++iy)
              for (std::int64_t ix = x0; ix < x1; ++ix) {
                y.at(n, c, i, j) += in.at(n, c, iy, ix) / area;
                dx.at(n, c, iy, ix) += g.at(n, c, i, j) / area;
              }
          }
    const auto t = testing::tolerance(GetParam(), 10);
    EXPECT_CLOSE(kernels::adaptive_avg_pool2d_forward(x, p, q), y.t, t.relative, t.absolute);
    EXPECT_CLOSE(kernels::adaptive_avg_pool2d_backward(dy, shape), dx.t, t.relative, t.absolute);
  }
}

// pytorch/pytorch#1810: a maximum never hides a NaN, wherever it stands in the window.
TEST_P(Pool2d, MaxShowsNan) {
  for (std::int64_t c : {1, 64, 70})
    for (int at = 0; at < 4; ++at) {
      const Tensor x = testing::to_f64(random_tensor({1, c, 2, 2}, 1));
      for (std::int64_t i = 0; i < c; ++i) x.data<double>()[i * 4 + at] = NAN;
      const Tensor y = kernels::max_pool2d_forward(kernels::cast(x, GetParam()), {}).y.reshape({c});
      for (std::int64_t i = 0; i < c; ++i) EXPECT_TRUE(std::isnan(testing::element(y, i)));
    }
}

// pytorch/pytorch#188344
TEST_P(Pool2d, PaddedAverageGradientInBothLayouts) {
  const AvgPool2dOptions o{{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}};
  for (MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    const Tensor dy = ones({1, 3, 5, 5}, {.dtype = kF64, .format = format});
    const Tensor dx = kernels::avg_pool2d_backward(kernels::cast(dy, GetParam()), {1, 3, 5, 5}, o);
    const Images g{testing::to_f64(dx)};
    const auto t = testing::tolerance(GetParam(), 4);
    for (int c = 0; c < 3; ++c) {
      double sum = 0;
      for (int y = 0; y < 5; ++y)
        for (int x = 0; x < 5; ++x) {
          const bool edge_y = y % 4 == 0, edge_x = x % 4 == 0;
          const double wanted = edge_y && edge_x ? 4.0 / 9 : edge_y || edge_x ? 6.0 / 9 : 1;
          EXPECT_NEAR(g.at(0, c, y, x), wanted, t.absolute);
          sum += g.at(0, c, y, x);
        }
      EXPECT_NEAR(sum, 169.0 / 9, 25 * t.absolute);
    }
  }
}

TEST_P(Pool2d, EmptyBatch) {
  const TensorOptions o{.dtype = GetParam()};
  const auto r = kernels::max_pool2d_forward(empty({0, 3, 4, 4}, o), {});
  EXPECT_EQ(r.y.shape(), Shape({0, 3, 2, 2}));
  EXPECT_EQ(kernels::max_pool2d_backward(r.y, r.taps, {0, 3, 4, 4}, {}).shape(),
            Shape({0, 3, 4, 4}));
  EXPECT_EQ(kernels::avg_pool2d_forward(empty({0, 3, 4, 4}, o), {}).shape(), Shape({0, 3, 2, 2}));
  EXPECT_EQ(kernels::avg_pool2d_backward(empty({0, 3, 2, 2}, o), {0, 3, 4, 4}, {}).shape(),
            Shape({0, 3, 4, 4}));
}

INSTANTIATE_TEST_SUITE_P(DTypes, Pool2d, ::testing::Values(kF32, kF64, kF16, kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST(Pool2dErrors, SayWhatIsWrong) {
  EXPECT_THROW(kernels::max_pool2d_forward(empty({1, 1, 1, 1}), {}), Error);
  EXPECT_THROW(kernels::max_pool2d_forward(empty({1, 1, 4, 4}), {.padding = {2, 2}}), Error);
  EXPECT_THROW(kernels::max_pool2d_forward(empty({4, 4}), {}), Error);
  EXPECT_THROW(kernels::max_pool2d_forward(empty({1, 1, 40, 40}), {.kernel = {17, 16}}), Error);
}

}  // namespace
}  // namespace lockstep
