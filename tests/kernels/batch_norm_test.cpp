// Batch norm's pieces against their formulas in f64.
#include "lockstep/kernels/batch_norm.h"

#include "kernels/dense_oracle.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/batch_norm_pool.h"
#include "lockstep/kernels/max_pool2d.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using kernels::BatchNormState;
using testing::random_tensor;

// The values of channel c, in row-major order of the other axes.
std::vector<double> channel(const Tensor& x, std::int64_t c) {
  const Tensor of = testing::to_f64(x.select(1, c));
  return {of.data<double>(), of.data<double>() + of.numel()};
}

struct Wanted {
  Tensor y, dx;
  std::vector<double> mean, var, dgamma, dbeta;
};

Wanted oracle(const Tensor& x, const Tensor& dy, const Tensor& gamma, const Tensor& beta,
              double eps, bool relu) {
  Wanted w{zeros(x.shape(), {.dtype = kF64}), zeros(x.shape(), {.dtype = kF64}), {}, {}, {}, {}};
  const Tensor inputs = testing::to_f64(x);
  for (std::int64_t c = 0; c < x.shape()[1]; ++c) {
    const std::vector<double> v = channel(inputs, c), g = channel(testing::to_f64(dy), c);
    const double n = static_cast<double>(v.size());
    const double a = testing::element(gamma, c), b = testing::element(beta, c);
    double mean = 0, var = 0, sum = 0, product = 0;
    for (double e : v) mean += e / n;
    for (double e : v) var += (e - mean) * (e - mean) / n;
    const double r = 1 / std::sqrt(var + eps);
    std::vector<double> y(v.size()), masked(v.size()), dx(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double z = (v[i] - mean) * r * a + b;
      y[i] = relu ? std::max(z, 0.0) : z;
      masked[i] = relu && z <= 0 ? 0 : g[i];
      sum += masked[i];
      product += masked[i] * (v[i] - mean);
    }
    for (std::size_t i = 0; i < v.size(); ++i)
      dx[i] = a * r * (masked[i] - sum / n - (v[i] - mean) * r * r * product / n);
    const Shape rest = x.select(1, c).shape();
    copy_elements(w.y.select(1, c), tensor(y, rest));
    copy_elements(w.dx.select(1, c), tensor(dx, rest));
    w.mean.push_back(mean);
    w.var.push_back(var);
    w.dgamma.push_back(product * r);
    w.dbeta.push_back(sum);
  }
  return w;
}

class BatchNorm : public ::testing::TestWithParam<DType> {};

TEST_P(BatchNorm, TrainingForwardAndBackward) {
  const DType dtype = GetParam();
  const std::vector<Shape> shapes = {{5, 3},         {2, 3, 7}, {4, 3, 5, 6}, {2, 70, 3, 3},
                                     {90, 16, 9, 9}, {64, 512}, {2, 1, 1, 1}, {33, 5, 1, 1}};
  for (const Shape& shape : shapes)
    for (bool relu : {false, true}) {
      SCOPED_TRACE(shape.str());
      const std::int64_t c = shape[1];
      const DType wide = dtype == kF64 ? kF64 : kF32;
      const Tensor x = random_tensor(shape, 1, dtype, 0.5, 2), dy = random_tensor(shape, 2, dtype);
      const Tensor gamma = random_tensor({c}, 3, wide), beta = random_tensor({c}, 4, wide);
      // The mask of values next to 0 may differ from the f64 one: no dy there.
      const Wanted first = oracle(x, dy, gamma, beta, 1e-5, false);
      if (relu) {
        const Tensor soft = testing::to_f64(dy);
        for (std::int64_t i = 0; i < soft.numel(); ++i)
          if (std::abs(first.y.data<double>()[i]) < 1e-3) soft.data<double>()[i] = 0;
        copy_elements(dy, kernels::cast(soft, dtype));
      }
      const Wanted wanted = oracle(x, dy, gamma, beta, 1e-5, relu);
      const auto moments = kernels::batch_norm_moments(x);
      EXPECT_EQ(moments.count, shape.numel() / c);
      EXPECT_CLOSE(moments.mean, tensor(wanted.mean), 1e-6, 1e-6);
      EXPECT_CLOSE(moments.var, tensor(wanted.var), 2e-6, 1e-7);
      const BatchNormState state{moments.mean, kernels::batch_norm_inverse_std(moments.var, 1e-5),
                                 gamma, beta, relu};
      const auto t = testing::tolerance(dtype, 4);
      const Tensor y = kernels::batch_norm_forward(x, state);
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_CLOSE(y, wanted.y, t.relative, 2 * t.absolute);
      const auto sums = kernels::batch_norm_backward_sums(dy, x, state);
      const double size = std::sqrt(static_cast<double>(moments.count)) * 10;
      const double fine = dtype == kF64 ? 1e-13 : 1e-6;
      EXPECT_CLOSE(sums.dy, tensor(wanted.dbeta), 10 * fine, size * fine);
      EXPECT_CLOSE(kernels::batch_norm_dgamma(sums, state.inverse_std), tensor(wanted.dgamma),
                   10 * fine, size * fine);
      // With two values the terms cancel to nothing of dy's size times up to 1 / sqrt(eps).
      const double scale = moments.count < 3 ? 50 : 4;
      EXPECT_CLOSE(kernels::batch_norm_backward(dy, x, state, sums, moments.count), wanted.dx,
                   4 * t.relative, scale * t.absolute);
    }
}

TEST_P(BatchNorm, GivenStatistics) {
  const DType dtype = GetParam(), wide = dtype == kF64 ? kF64 : kF32;
  const Tensor x = random_tensor({3, 4, 5, 2}, 1, dtype),
               dy = random_tensor({3, 4, 5, 2}, 2, dtype);
  const BatchNormState state{random_tensor({4}, 3, wide),
                             full({4}, 1.5, {.dtype = wide}),
                             random_tensor({4}, 4, wide),
                             {},
                             false};
  const Tensor y = kernels::batch_norm_forward(x, state);
  const Tensor dx = kernels::batch_norm_backward_given(dy, x, state);
  const auto t = testing::tolerance(dtype, 4);
  for (int c = 0; c < 4; ++c) {
    const double k = 1.5 * testing::element(state.gamma, c), m = testing::element(state.mean, c);
    const auto xs = channel(x, c), gs = channel(dy, c), ys = channel(y, c), dxs = channel(dx, c);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      EXPECT_NEAR(ys[i], (xs[i] - m) * k, t.absolute + t.relative * std::abs(ys[i]));
      EXPECT_NEAR(dxs[i], gs[i] * k, t.absolute + t.relative * std::abs(dxs[i]));
    }
  }
}

TEST_P(BatchNorm, EmptyBatchChangesNothing) {
  const Tensor x = empty({0, 3, 4, 4}, {.dtype = GetParam()});
  const auto moments = kernels::batch_norm_moments(x);
  EXPECT_EQ(moments.count, 0);
  const Tensor mean = full({3}, 7), var = full({3}, 8);
  kernels::batch_norm_update_running(mean, var, moments, 0.1);
  EXPECT_SAME_BITS(mean, full({3}, 7));
  EXPECT_SAME_BITS(var, full({3}, 8));
  const BatchNormState state{
      moments.mean, kernels::batch_norm_inverse_std(moments.var, 1e-5), {}, {}, true};
  EXPECT_EQ(kernels::batch_norm_forward(x, state).shape(), x.shape());
  const auto sums = kernels::batch_norm_backward_sums(x, x, state);
  EXPECT_CLOSE(sums.dy, zeros({3}), 0, 0);
  EXPECT_EQ(kernels::batch_norm_backward(x, x, state, sums, 0).shape(), x.shape());
}

// pytorch/pytorch#88718
TEST_P(BatchNorm, TheNumberOfThreadsChangesNoBit) {
  const Tensor x = random_tensor({40, 24, 13, 13}, 1, GetParam());
  const Tensor dy = random_tensor({40, 24, 13, 13}, 2, GetParam());
  std::vector<Tensor> first;
  for (int threads : {1, 2, 6}) {
    set_num_threads(threads);
    const auto m = kernels::batch_norm_moments(x);
    const BatchNormState state{m.mean, kernels::batch_norm_inverse_std(m.var, 1e-5), {}, {}, true};
    const auto sums = kernels::batch_norm_backward_sums(dy, x, state);
    const std::vector<Tensor> now = {
        m.mean,  m.var,       kernels::batch_norm_forward(x, state),
        sums.dy, sums.dy_xmu, kernels::batch_norm_backward(dy, x, state, sums, m.count)};
    if (first.empty()) first = now;
    for (std::size_t i = 0; i < now.size(); ++i) EXPECT_SAME_BITS(now[i], first[i]);
  }
  set_num_threads(0);
}

TEST_P(BatchNorm, WithPoolingIsOneAfterTheOther) {
  const DType dtype = GetParam();
  const std::vector<std::pair<Shape, kernels::Pool2dOptions>> cases = {
      {{2, 3, 6, 4}, {}},
      {{3, 70, 7, 9}, {}},  // a row and a column in no window
      {{20, 64, 8, 8}, {}},
      {{2, 1, 9, 6}, {.kernel = {3, 2}, .stride = {3, 2}}},
      {{4, 5, 1, 1}, {.kernel = {1, 1}, .stride = {1, 1}}}};
  for (const auto& [shape, window] : cases)
    for (MemoryFormat format : {MemoryFormat::kChannelsLast, MemoryFormat::kContiguous}) {
      SCOPED_TRACE(shape.str());
      const std::int64_t c = shape[1];
      const Tensor x = random_tensor(shape, 1, dtype, 0.5, 2);
      const auto m = kernels::batch_norm_moments(x);
      const BatchNormState state{m.mean, kernels::batch_norm_inverse_std(m.var, 1e-5),
                                 random_tensor({c}, 3, kF32), random_tensor({c}, 4, kF32), true};
      const Tensor between = kernels::batch_norm_forward(x, state);
      const auto wanted = kernels::max_pool2d_forward(between, window, format);
      const auto r = kernels::batch_norm_pool_forward(x, state, window, format);
      EXPECT_TRUE(r.y.is_contiguous(format));
      EXPECT_SAME_BITS(r.y, wanted.y);
      const Tensor dy = random_tensor(wanted.y.shape(), 5, dtype).contiguous(format);
      const Tensor g = kernels::max_pool2d_backward(dy, wanted.taps, shape, window);
      const auto sums = kernels::batch_norm_backward_sums(g, x, state);
      const auto fused = kernels::batch_norm_pool_backward_sums(dy, r.taps, x, state, window);
      const double tol = dtype == kF64 ? 1e-12 : 2e-5;
      const bool half = dtype_size(dtype) == 2;
      // Rounded to half, more values tie, and the first of them is another one.
      if (!half) {
        EXPECT_CLOSE(fused.dy, sums.dy, tol, tol * 10);
        EXPECT_CLOSE(fused.dy_xmu, sums.dy_xmu, tol, tol * 10);
        EXPECT_CLOSE(kernels::batch_norm_pool_backward(dy, r.taps, x, state, window, sums, m.count),
                     kernels::batch_norm_backward(g, x, state, sums, m.count), tol, tol);
      } else {
        const auto t = testing::tolerance(dtype, 4);
        const Tensor own = kernels::max_pool2d_backward(dy, r.taps, shape, window);
        EXPECT_CLOSE(fused.dy, kernels::batch_norm_backward_sums(own, x, state).dy, tol, tol * 10);
        EXPECT_CLOSE(
            kernels::batch_norm_pool_backward(dy, r.taps, x, state, window, fused, m.count),
            kernels::batch_norm_backward(own, x, state, fused, m.count), t.relative, t.absolute);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(DTypes, BatchNorm, ::testing::Values(kF32, kF64, kF16, kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

// E[x²] - E[x]² would leave nothing of these variances.
TEST(BatchNormAccuracy, ALargeMeanCancelsNothing) {
  const Tensor x = random_tensor({64, 4, 26, 26}, 1, kF32, 1e4, 1);
  const auto m = kernels::batch_norm_moments(x);
  for (int c = 0; c < 4; ++c) {
    const auto v = channel(x, c);
    double mean = 0, var = 0;
    for (double e : v) mean += e / static_cast<double>(v.size());
    for (double e : v) var += (e - mean) * (e - mean) / static_cast<double>(v.size());
    EXPECT_NEAR(testing::element(m.mean, c), mean, 6e-4);  // half of f32's last place
    EXPECT_NEAR(testing::element(m.var, c), var, 1e-5 * var);
  }
}

TEST(BatchNormAccuracy, AnOutlierInFrontHarmsNoVariance) {
  const Tensor x = random_tensor({1000, 2}, 1, kF32);
  x.data<float>()[0] = 1e5f;
  const auto m = kernels::batch_norm_moments(x);
  for (int c = 0; c < 2; ++c) {
    const auto v = channel(x, c);
    double mean = 0, var = 0;
    for (double e : v) mean += e / 1000;
    for (double e : v) var += (e - mean) * (e - mean) / 1000;
    EXPECT_NEAR(testing::element(m.var, c), var, 2e-6 * var);
  }
}

TEST(BatchNormRelu, KeepsNan) {
  const Tensor x = tensor<float>({1, NAN, -3, 4}, {2, 2});
  const Tensor y = kernels::batch_norm_forward(x, {zeros({2}), ones({2}), {}, {}, true});
  EXPECT_EQ(testing::element(y, 0), 1);
  EXPECT_TRUE(std::isnan(testing::element(y, 1)));
  EXPECT_EQ(testing::element(y, 2), 0);
}

// mlpack/mlpack#2561
TEST(BatchNormRunning, UseTheUnbiasedVariance) {
  const Tensor mean = zeros({1}), var = ones({1});
  kernels::batch_norm_update_running(
      mean, var, kernels::batch_norm_moments(tensor<float>({1, 3}, {2, 1})), 0.1);
  EXPECT_NEAR(mean.item(), 0.2, 1e-7);
  EXPECT_NEAR(var.item(), 1.1, 1e-6);
  const Tensor y = kernels::batch_norm_forward(
      tensor<float>({2}, {1, 1}), {mean, kernels::batch_norm_inverse_std(var, 1e-5), {}, {}});
  EXPECT_NEAR(y.item(), 1.716225, 2e-6);
}

}  // namespace
}  // namespace lockstep
