#include "lockstep/autograd/ops/layer_norm.h"

#include <limits>

#include "autograd/reference_case.h"
#include "lockstep/autograd/gradcheck.h"
#include "lockstep/core/threads.h"

namespace lockstep {
namespace {

using namespace testing;

TEST(LayerNorm, MatchesPyTorch) {
  const Reference reference("losses");
  for (const auto& dtype : kFloatingNames) {
    // The parameters' gradients are sums over 15 rows, rounded once here, per row in PyTorch.
    Tolerance t = tolerance_of(dtype);
    t.atol *= 4;
    check_case(reference, "layer_norm/" + dtype, {"x", "w", "b"}, t,
               [](const auto& v) { return layer_norm(v[0], {37}, v[1], v[2]); });
    check_case(reference, "layer_norm_axes/" + dtype, {"x", "w", "b"}, t, [](const auto& v) {
      return layer_norm(v[0], {4, 6}, v[1], v[2], 1e-3);
    });
    check_case(reference, "layer_norm_plain/" + dtype, {"x"}, t,
               [](const auto& v) { return layer_norm(v[0], {20}); });
  }
}

TEST(LayerNorm, GradientsMatchFiniteDifferences) {
  const Tensor x = tensor<double>({0.3, -1, 2, 0.5, 0.1, -0.7, 1.5, 0.2, 0.9, -2, 0, 1}, {2, 2, 3});
  const Tensor w = tensor<double>({1, -0.5, 2}), b = tensor<double>({0.1, 0.2, 0.3});
  EXPECT_EQ(gradcheck([](const auto& v) { return layer_norm(v[0], {3}, v[1], v[2]); }, {x, w, b}),
            "");
  EXPECT_EQ(gradcheck([](const auto& v) { return layer_norm(v[0], {2, 3}); }, {x}), "");
  EXPECT_EQ(gradcheck([&](const auto& v) { return layer_norm(v[0], {3}, {}, v[1]); }, {x, b}), "");
}

// nntrainer/nntrainer#3935: squares in f16 overflowed.
TEST(LayerNorm, HalfValuesWhoseSquaresOverflow) {
  Tensor x = full({1, 8192}, 300, {kF16});
  const Variable v(x, true);
  const Variable bias(ones({8192}, {kF16}));
  const Variable y = layer_norm(v, {8192}, {}, bias);
  EXPECT_CLOSE(y.data(), ones({1, 8192}), 0, 0);
  y.backward(ones({1, 8192}, {kF16}));
  for (std::int64_t i = 0; i < 8192; ++i) ASSERT_TRUE(std::isfinite(element(v.grad(), i)));

  // With alternating signs the mean square is 90000 and every output is +-1.
  for (std::int64_t i = 1; i < 8192; i += 2) x.data<Half>()[i] = Half(-300);
  const Tensor z = layer_norm(x, {8192}).data();
  for (std::int64_t i = 0; i < 8192; ++i) ASSERT_NEAR(element(z, i), i % 2 ? -1 : 1, 1e-3);
}

TEST(LayerNorm, LargeOffsetsDoNotCancel) {
  Tensor x = empty({1, 1000});
  for (int i = 0; i < 1000; ++i) x.data<float>()[i] = 4096 + (i % 2 ? 1.0f : -1.0f);
  const Tensor y = layer_norm(x, {1000}, {}, {}, 0).data();
  for (int i = 0; i < 1000; ++i) ASSERT_NEAR(element(y, i), i % 2 ? 1 : -1, 1e-5);
}

TEST(LayerNorm, HalfInputsWithFullParameters) {
  const Variable x(filled_with(tensor<float>({1, 2, 3, 4}, {2, 2}), kBF16), true);
  const Variable w(tensor<float>({2, 3}), true), b(tensor<float>({0.5f, 1}), true);
  const Variable y = layer_norm(x, {2}, w, b);
  EXPECT_EQ(y.dtype(), kBF16);
  EXPECT_CLOSE(y.data(), tensor<float>({-1.5f, 4, -1.5f, 4}, {2, 2}), 1e-2, 0);
  y.backward(ones({2, 2}, {kBF16}));
  EXPECT_EQ(x.grad().dtype(), kBF16);
  EXPECT_EQ(w.grad().dtype(), kF32);
  EXPECT_CLOSE(b.grad(), tensor<float>({2, 2}), 0, 0);
  EXPECT_CLOSE(w.grad(), tensor<float>({-2, 2}), 1e-3, 0);
}

TEST(LayerNorm, EmptyTensors) {
  for (const Shape& shape : {Shape{0, 4}, Shape{3, 0}}) {
    const Shape inner{shape[1]};
    const Variable x(zeros(shape), true), w(ones(inner), true), b(zeros(inner), true);
    const Variable y = layer_norm(x, inner, w, b);
    y.backward(zeros(shape));
    EXPECT_EQ(x.grad().shape(), shape);
    EXPECT_SAME_BITS(w.grad(), zeros(inner));
    EXPECT_SAME_BITS(b.grad(), zeros(inner));
  }
}

TEST(LayerNorm, NanSpoilsItsRowOnly) {
  Tensor x = zeros({2, 19});
  x.data<float>()[18] = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = layer_norm(x, {19}).data();
  for (int i = 0; i < 38; ++i) EXPECT_EQ(std::isnan(element(y, i)), i < 19);
}

TEST(LayerNorm, SameBitsForAnyNumberOfThreads) {
  Tensor x = empty({1500, 70});
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.data<float>()[i] = static_cast<float>((i * 7919) % 1013) / 100;
  const int before = num_threads();
  std::vector<std::vector<Tensor>> runs;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Variable v(x, true), w(full({70}, 1.5), true), b(zeros({70}), true);
    const Variable y = layer_norm(v, {70}, w, b);
    y.backward(x);
    runs.push_back({y.data(), v.grad(), w.grad(), b.grad()});
  }
  set_num_threads(before);
  for (std::size_t run : {1, 2})
    for (std::size_t i = 0; i < 4; ++i) EXPECT_SAME_BITS(runs[run][i], runs[0][i]);
}

TEST(LayerNorm, Errors) {
  const std::string shape = error_of([] { layer_norm(zeros({2, 3}), {4}); });
  EXPECT_NE(shape.find("(4,)"), std::string::npos) << shape;
  EXPECT_NE(shape.find("(2, 3)"), std::string::npos) << shape;
  const std::string weight = error_of([] { layer_norm(zeros({2, 3}), {3}, zeros({2})); });
  EXPECT_NE(weight.find("weight"), std::string::npos) << weight;
}

}  // namespace
}  // namespace lockstep
