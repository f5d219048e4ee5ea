// gemm, matmul, bmm and linear against sums in f64.
#include "lockstep/kernels/matmul.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/dense_oracle.h"
#include "lockstep/core/error.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/gemm.h"
#include "lockstep/kernels/linear.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using testing::random_tensor;

class Products : public ::testing::TestWithParam<DType> {};

TEST_P(Products, AnyStridesAndSizes) {
  const DType dtype = GetParam();
  const std::int64_t sizes[][3] = {{1, 1, 1},   {3, 5, 7},    {64, 10, 33}, {17, 70, 130},
                                   {70, 17, 1}, {1, 40, 300}, {40, 1, 300}, {29, 65, 513},
                                   {600, 3, 5}, {5, 600, 20}};
  for (const auto& s : sizes) {
    const std::int64_t m = s[0], n = s[1], k = s[2];
    SCOPED_TRACE(Shape({m, n, k}).str());
    for (int layout = 0; layout < 5; ++layout) {
      Tensor a = random_tensor({m, k}, 1, dtype), b = random_tensor({k, n}, 2, dtype);
      if (layout & 1) a = random_tensor({k, m}, 1, dtype).t();
      if (layout & 2) b = random_tensor({n, k}, 2, dtype).t();
      if (layout == 4) {  // every second element of a larger matrix
        a = random_tensor({2 * m, 2 * k}, 1, dtype).slice(0, 0, 2 * m, 2).slice(1, 0, 2 * k, 2);
        b = random_tensor({2 * k, 2 * n}, 2, dtype).slice(0, 0, 2 * k, 2).slice(1, 0, 2 * n, 2);
      }
      const auto t = testing::tolerance(dtype, static_cast<double>(k));
      const Tensor wanted = testing::product_oracle(a, b);
      const Tensor wide = full({m, n + 3}, NAN, {.dtype = dtype});  // rows with a gap behind
      const Tensor c = wide.slice(1, 0, n);
      kernels::gemm(a, b, c);
      EXPECT_CLOSE(c, wanted, t.relative, t.absolute);
      for (std::int64_t i = 0; i < m; ++i)
        EXPECT_TRUE(std::isnan(testing::element(wide, i * (n + 3) + n))) << "wrote beyond its rows";
      kernels::gemm(a, b, c, true);
      const Tensor twice = testing::to_f64(wanted);
      for (std::int64_t i = 0; i < m * n; ++i) twice.data<double>()[i] *= 2;
      EXPECT_CLOSE(c, twice, 2 * t.relative, 2 * t.absolute);
    }
  }
}

TEST_P(Products, NoTermsGiveZero) {
  const TensorOptions o{.dtype = GetParam()};
  EXPECT_CLOSE(kernels::matmul_forward(empty({2, 0}, o), empty({0, 3}, o)), zeros({2, 3}, o), 0, 0);
  EXPECT_EQ(kernels::matmul_forward(empty({0, 4}, o), empty({4, 3}, o)).shape(), Shape({0, 3}));
  EXPECT_EQ(kernels::matmul_forward(empty({5, 0, 4}, o), empty({4, 3}, o)).shape(),
            Shape({5, 0, 3}));
  EXPECT_CLOSE(kernels::matmul_forward(empty({5, 2, 0}, o), empty({0, 3}, o)), zeros({5, 2, 3}, o),
               0, 0);
  EXPECT_CLOSE(kernels::linear_backward_weight(empty({0, 3}, o), empty({0, 4}, o)),
               zeros({3, 4}, o), 0, 0);
  EXPECT_CLOSE(kernels::linear_backward_bias(empty({0, 3}, o)), zeros({3}, o), 0, 0);
}

TEST_P(Products, BatchesBroadcastAndTheirGradientsSum) {
  const DType dtype = GetParam();
  const Tensor a = random_tensor({3, 1, 4, 5}, 1, dtype), b = random_tensor({2, 5, 6}, 2, dtype);
  const Tensor y = kernels::matmul_forward(a, b);
  ASSERT_EQ(y.shape(), Shape({3, 2, 4, 6}));
  const auto t = testing::tolerance(dtype, 40);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j)
      EXPECT_CLOSE(y.select(0, i).select(0, j),
                   testing::product_oracle(a.select(0, i).select(0, 0), b.select(0, j)), t.relative,
                   t.absolute);
  const Tensor dy = random_tensor(y.shape(), 3, dtype);
  const Tensor da = kernels::matmul_backward_a(dy, a, b);
  const Tensor db = kernels::matmul_backward_b(dy, a, b);
  ASSERT_EQ(da.shape(), a.shape());
  ASSERT_EQ(db.shape(), b.shape());
  for (int i = 0; i < 3; ++i) {
    Tensor sum = zeros({4, 5}, {.dtype = kF64});
    for (int j = 0; j < 2; ++j) {
      const Tensor part = testing::product_oracle(dy.select(0, i).select(0, j), b.select(0, j).t());
      for (int e = 0; e < 20; ++e) sum.data<double>()[e] += part.data<double>()[e];
    }
    EXPECT_CLOSE(da.select(0, i).select(0, 0), sum, t.relative, t.absolute);
  }
  for (int j = 0; j < 2; ++j) {
    Tensor sum = zeros({5, 6}, {.dtype = kF64});
    for (int i = 0; i < 3; ++i) {
      const Tensor part =
          testing::product_oracle(a.select(0, i).select(0, 0).t(), dy.select(0, i).select(0, j));
      for (int e = 0; e < 30; ++e) sum.data<double>()[e] += part.data<double>()[e];
    }
    EXPECT_CLOSE(db.select(0, j), sum, t.relative, t.absolute);
  }
}

TEST_P(Products, VectorsLoseTheirAxis) {
  const DType dtype = GetParam();
  const Tensor a = random_tensor({4}, 1, dtype), m = random_tensor({4, 3}, 2, dtype);
  EXPECT_EQ(kernels::matmul_forward(a, m).shape(), Shape({3}));
  EXPECT_EQ(kernels::matmul_forward(m.t(), a).shape(), Shape({3}));
  EXPECT_EQ(kernels::matmul_forward(a, a).shape(), Shape());
  EXPECT_EQ(kernels::matmul_backward_a(random_tensor({3}, 3, dtype), a, m).shape(), Shape({4}));
  EXPECT_EQ(kernels::matmul_backward_b(random_tensor({3}, 3, dtype), a, m).shape(), m.shape());
}

TEST_P(Products, LinearAndItsGradients) {
  const DType dtype = GetParam();
  const Tensor x = random_tensor({2, 9, 20}, 1, dtype), w = random_tensor({7, 20}, 2, dtype);
  const Tensor b = random_tensor({7}, 3, dtype), dy = random_tensor({2, 9, 7}, 4, dtype);
  const auto t = testing::tolerance(dtype, 20);
  const Tensor y = kernels::linear_forward(x, w, b);
  const Tensor wanted = testing::product_oracle(x.view({18, 20}), w.t());
  for (int i = 0; i < 18 * 7; ++i) wanted.data<double>()[i] += testing::element(b, i % 7);
  EXPECT_CLOSE(y.view({18, 7}), wanted, 2 * t.relative, 2 * t.absolute);
  const Tensor r = kernels::linear_forward(x, w, b, true);
  for (int i = 0; i < 18 * 7; ++i)
    EXPECT_EQ(testing::element(r, i), std::max(0.0, testing::element(y, i)));
  EXPECT_CLOSE(kernels::linear_backward_input(dy, w).view({18, 20}),
               testing::product_oracle(dy.view({18, 7}), w), t.relative, t.absolute);
  EXPECT_CLOSE(kernels::linear_backward_weight(dy, x),
               testing::product_oracle(dy.view({18, 7}).t(), x.view({18, 20})), t.relative,
               t.absolute);
  EXPECT_CLOSE(kernels::linear_backward_bias(dy).view({1, 7}),
               testing::product_oracle(ones({1, 18}, {.dtype = dtype}), dy.view({18, 7})),
               t.relative, t.absolute);
}

// pytorch/pytorch#88718
TEST_P(Products, DeterministicModeGivesTheSameBitsForAnyNumberOfThreads) {
  const DType dtype = GetParam();
  const Tensor x = random_tensor({64, 130}, 1, dtype), w = random_tensor({70, 130}, 2, dtype);
  const Tensor large = random_tensor({1500, 130}, 3, dtype);
  std::vector<Tensor> first;
  for (int threads : {1, 2, 6}) {
    set_num_threads(threads);
    const std::vector<Tensor> now = {
        kernels::linear_forward(x, w, {}), kernels::matmul_forward(large, w.t()),
        kernels::matmul_forward(w, large.t()), kernels::linear_backward_weight(large, large)};
    if (first.empty()) first = now;
    for (std::size_t i = 0; i < now.size(); ++i) EXPECT_SAME_BITS(now[i], first[i]);
  }
  set_num_threads(0);
}

INSTANTIATE_TEST_SUITE_P(DTypes, Products, ::testing::Values(kF32, kF64, kF16, kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

// ggml-org/ggml#123: a wrong shape is an exception that names both.
TEST(ProductErrors, NameBothShapes) {
  try {
    kernels::matmul_forward(empty({2, 3}), empty({4, 5}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("(2, 3)"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("(4, 5)"), std::string::npos) << e.what();
  }
  EXPECT_THROW(kernels::bmm_forward(empty({2, 3, 4}), empty({3, 4, 5})), Error);
  EXPECT_THROW(kernels::matmul_forward(empty({2, 3, 4}), empty({3, 4, 5})), Error);
  EXPECT_THROW(kernels::matmul_forward(empty({3}), empty({3}, {.dtype = kF64})), Error);
  EXPECT_THROW(kernels::linear_forward(empty({2, 3}), empty({4, 5}), {}), Error);
}

#ifdef _OPENMP
// pytorch/pytorch#193784: called from inside the host program's own parallel region, each piece of
// work is still done once.
TEST(ProductsInAHostsParallelRegion, EveryElementIsRight) {
  for (int threads : {1, 2, 8}) {
    std::vector<int> wrong(threads, 0);
#pragma omp parallel num_threads(threads)
    {
      const Tensor a = ones({64, 64}), b = ones({64, 64}), c = ones({64, 64});
      kernels::gemm(a, b, c, true);
      for (int i = 0; i < 64 * 64; ++i)
        if (c.data<float>()[i] != 65) ++wrong[omp_get_thread_num()];
    }
    for (int w : wrong) EXPECT_EQ(w, 0);
    set_num_threads(threads);
    const Tensor a = ones({64, 64}), b = ones({64, 64}), c = ones({64, 64});
    kernels::gemm(a, b, c, true);
    EXPECT_SAME_BITS(c, full({64, 64}, 65));
  }
  set_num_threads(0);
}
#endif

}  // namespace
}  // namespace lockstep
