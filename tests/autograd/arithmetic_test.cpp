#include "lockstep/autograd/ops/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/autograd/grad_mode.h"
#include "lockstep/autograd/gradcheck.h"
#include "lockstep/autograd/ops/activation.h"
#include "lockstep/autograd/ops/cast.h"
#include "lockstep/autograd/ops/sum.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using Vars = std::vector<Variable>;

// f64 values in [low, high), the same in every run.
Tensor values(const Shape& shape, double low = -2, double high = 2, std::uint64_t seed = 1) {
  Tensor t = empty(shape, {.dtype = kF64});
  double* p = t.data<double>();
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    p[i] = low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53;
  }
  return t;
}

TEST(Arithmetic, GradientsAgreeWithFiniteDifferences) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{3, 4}, {3, 4}},    {{3, 4}, {4}},
                                                       {{3, 1}, {1, 4}},    {{}, {2, 3}},
                                                       {{2, 3, 4}, {3, 1}}, {{0, 3}, {3}}};
  for (const auto& [sa, sb] : shapes) {
    const std::vector<Tensor> in = {values(sa, -2, 2, 1), values(sb, 0.5, 2, 2)};
    EXPECT_EQ(gradcheck([](const Vars& v) { return v[0] + v[1]; }, in), "");
    EXPECT_EQ(gradcheck([](const Vars& v) { return v[0] - v[1]; }, in), "");
    EXPECT_EQ(gradcheck([](const Vars& v) { return v[0] * v[1]; }, in), "");
    EXPECT_EQ(gradcheck([](const Vars& v) { return v[0] / v[1]; }, in), "");
    EXPECT_EQ(gradcheck([](const Vars& v) { return v[1] / v[0]; }, {values(sa, 1, 2, 3), in[1]}),
              "");
  }
}

TEST(Arithmetic, GradientsWithNumbers) {
  const std::vector<Tensor> in = {values({2, 3}, 0.5, 2)};
  EXPECT_EQ(gradcheck([](const Vars& v) { return 3 - v[0] * 2.5; }, in), "");
  EXPECT_EQ(gradcheck([](const Vars& v) { return 2.0 / v[0] + v[0] / 4; }, in), "");
  EXPECT_EQ(gradcheck([](const Vars& v) { return -v[0] - 1; }, in), "");
}

TEST(Arithmetic, ShapesThatDoNotBroadcastAreAnError) {
  // ggml-org/ggml#123: shapes that don't fit are an exception, and the process lives on.
  const Variable a = ones({2, 3}), b = ones({3, 4});
  EXPECT_THROW(a * b, Error);
  try {
    add(a, b);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("(2, 3)"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("(3, 4)"), std::string::npos) << e.what();
  }
}

TEST(Arithmetic, OnlyWhatIsNeededIsSaved) {
  Variable a(ones({2}), true);
  Variable b(ones({2}));
  Variable y = mul(a, b);
  a.data().bump_version();  // b's gradient is not wanted, so a was not saved
  EXPECT_NO_THROW(y.backward(ones({2})));
}

TEST(InPlace, AddsToTheGraph) {
  Variable a(tensor<float>({1, 2, 3}), true), b(tensor<float>({4, 5, 6}), true);
  Variable x = a * 2.0;
  mul_(x, b);
  add_(x, a);
  EXPECT_CLOSE(x.data(), tensor<float>({9, 22, 39}), 0, 0);
  x.backward(ones({3}));
  EXPECT_CLOSE(a.grad(), tensor<float>({9, 11, 13}), 0, 0);
  EXPECT_CLOSE(b.grad(), tensor<float>({2, 4, 6}), 0, 0);
}

TEST(InPlace, OfItself) {
  Variable a(tensor<float>({1, 2, 3}), true);
  Variable x = a + 1;
  mul_(x, x);  // x², both factors are the new variable's past
  x.backward(ones({3}));
  EXPECT_CLOSE(a.grad(), tensor<float>({4, 6, 8}), 0, 0);
}

TEST(InPlace, LeafThatRequiresAGradientIsRefused) {
  Variable a(ones({2}), true);
  EXPECT_THROW(add_(a, 1.0), Error);
  EXPECT_CLOSE(a.data(), ones({2}), 0, 0);
  NoGradGuard no_grad;
  EXPECT_NO_THROW(add_(a, 1.0));
  EXPECT_CLOSE(a.data(), full({2}, 2), 0, 0);
}

TEST(InPlace, ChangeOfSomethingSavedNamesTheOperation) {
  Variable a(ones({2}), true);
  Variable x = a * 3.0;
  Variable y = mul(x, x);
  add_(x, 1.0);
  try {
    y.backward(ones({2}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'mul'"), std::string::npos) << e.what();
  }
}

TEST(InPlace, CopyAndFill) {
  Variable a(tensor<float>({1, 2}), true), b(tensor<float>({5}), true);
  Variable x = a * 2.0;
  copy_(x, b);
  EXPECT_CLOSE(x.data(), tensor<float>({5, 5}), 0, 0);
  x.backward(tensor<float>({3, 4}));
  EXPECT_CLOSE(a.grad(), tensor<float>({0, 0}), 0, 0);
  EXPECT_CLOSE(b.grad(), tensor<float>({7}), 0, 0);
  Variable z = a * 1.0;
  fill_(z, 9);
  EXPECT_CLOSE(z.data(), tensor<float>({9, 9}), 0, 0);
}

TEST(InPlace, ResultMustFit) {
  Variable i(arange(3)), f(ones({3})), wide(ones({2, 3}));
  EXPECT_THROW(add_(i, f), Error);     // floating into integer
  EXPECT_THROW(add_(f, wide), Error);  // does not broadcast to f's shape
  EXPECT_NO_THROW(add_(f, i));
  EXPECT_CLOSE(f.data(), tensor<float>({1, 2, 3}), 0, 0);
}

TEST(InPlace, OverlappingViewReadsTheOldValues) {
  Tensor base = tensor<float>({1, 2, 3, 4});
  Variable tail(base.slice(0, 1, 4));
  add_(tail, Variable(base.slice(0, 0, 3)));
  EXPECT_CLOSE(base, tensor<float>({1, 3, 5, 7}), 0, 0);
}

TEST(Sum, GradientsAgreeWithFiniteDifferences) {
  const Tensor x = values({2, 3, 4});
  for (const Shape& axes : {Shape{}, Shape{0}, Shape{-1}, Shape{0, 2}, Shape{1, 2}}) {
    for (bool keepdim : {false, true}) {
      EXPECT_EQ(gradcheck([&](const Vars& v) { return sum(v[0], axes, keepdim); }, {x}), "");
      EXPECT_EQ(gradcheck([&](const Vars& v) { return mean(v[0], axes, keepdim); }, {x}), "");
    }
  }
}

TEST(Activation, GradientsAgreeWithFiniteDifferences) {
  const Tensor x = values({40}, -5, 5);
  EXPECT_EQ(gradcheck([](const Vars& v) { return relu(v[0]); }, {x}), "");
  EXPECT_EQ(gradcheck([](const Vars& v) { return sigmoid(v[0]); }, {x}), "");
  EXPECT_EQ(gradcheck([](const Vars& v) { return tanh(v[0]); }, {x}), "");
  EXPECT_EQ(gradcheck([](const Vars& v) { return silu(v[0]); }, {x}), "");
  EXPECT_EQ(gradcheck([](const Vars& v) { return gelu(v[0]); }, {x}), "");
  EXPECT_EQ(gradcheck([](const Vars& v) { return gelu(v[0], GeluApproximation::kTanh); }, {x}), "");
}

TEST(Cast, GradientComesBackInTheInputsDtype) {
  Variable x(tensor<float>({1, 2}), true);
  Variable y = to(x, kBF16) * 2.0;
  EXPECT_EQ(y.dtype(), kBF16);
  y.backward(ones({2}, {.dtype = kBF16}));
  EXPECT_EQ(x.grad().dtype(), kF32);
  EXPECT_CLOSE(x.grad(), tensor<float>({2, 2}), 0, 0);
}

}  // namespace
}  // namespace lockstep
