// conv2d against the sums of its formula in f64, in every dtype, layout and algorithm.
#include "lockstep/kernels/conv2d.h"

#include "kernels/dense_oracle.h"
#include "lockstep/core/error.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/image_layout.h"
#include "support/expect_close.h"

namespace lockstep {
namespace {

using kernels::Conv2dOptions;
using kernels::ConvAlgorithm;
using testing::random_tensor;

struct Case {
  Shape x, w;
  Conv2dOptions options = {};
  bool bias = true;
};

std::vector<Case> cases() {
  return {
      {{2, 3, 8, 8}, {4, 3, 3, 3}},
      {{1, 1, 5, 5}, {1, 1, 3, 3}, {.padding = {1, 1}}},
      {{3, 1, 9, 7}, {16, 1, 3, 3}},
      {{2, 16, 10, 10}, {32, 16, 3, 3}, {}, false},
      {{2, 5, 7, 9}, {7, 5, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}}},
      {{1, 4, 11, 6}, {6, 4, 3, 3}, {.stride = {2, 3}, .padding = {2, 1}, .dilation = {2, 1}}},
      {{2, 8, 6, 6}, {12, 2, 3, 3}, {.padding = {1, 1}, .groups = 4}},
      {{2, 16, 6, 6}, {32, 1, 3, 3}, {.padding = {1, 1}, .groups = 16}},
      {{3, 6, 5, 5}, {10, 6, 1, 1}},
      {{2, 6, 5, 5}, {10, 6, 1, 1}, {.stride = {2, 2}}},
      {{1, 33, 4, 4}, {17, 33, 4, 4}},
      {{2, 3, 1, 1}, {5, 3, 1, 1}},
      {{1, 2, 9, 9}, {3, 2, 5, 5}, {.padding = {4, 4}}},
      {{40, 3, 4, 4}, {8, 3, 3, 3}, {.padding = {1, 1}}},  // several pieces, the last shorter
  };
}

void expect_matches(const Case& c, DType dtype, ConvAlgorithm algorithm) {
  Conv2dOptions options = c.options;
  options.algorithm = algorithm;
  SCOPED_TRACE(std::string(dtype_name(dtype)) + " x " + c.x.str() + " w " + c.w.str());
  const Tensor x = random_tensor(c.x, 1, dtype), w = random_tensor(c.w, 2, dtype, 0, 0.3);
  const Tensor b = c.bias ? random_tensor({c.w[0]}, 3, dtype) : Tensor();
  const Shape y_shape = kernels::conv2d_shape(c.x, c.w, options);
  const Tensor dy = random_tensor(y_shape, 4, dtype);
  const auto wanted = testing::conv_oracle(x, w, b, dy, options);
  const double terms = static_cast<double>(c.w[1] * c.w[2] * c.w[3]);
  const auto t = testing::tolerance(dtype, terms);
  const Tensor y = kernels::conv2d_forward(x, w, b, options);
  EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(y.dtype(), dtype);
  EXPECT_CLOSE(y, wanted.y, t.relative, t.absolute);
  const Tensor dx = kernels::conv2d_backward_data(dy, w, c.x, options);
  EXPECT_TRUE(dx.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_CLOSE(dx, wanted.dx, t.relative, t.absolute);
  const auto g = kernels::conv2d_backward_weights(dy, x, c.w, c.bias, options);
  const double pixels = static_cast<double>(y_shape[0] * y_shape[2] * y_shape[3]);
  const auto tw = testing::tolerance(dtype, pixels);
  EXPECT_TRUE(g.dw.is_contiguous());
  EXPECT_EQ(g.dw.dtype(), dtype);
  EXPECT_CLOSE(g.dw, wanted.dw, tw.relative, tw.absolute);
  EXPECT_EQ(g.db.defined(), c.bias);
  if (c.bias) {
    EXPECT_CLOSE(g.db, wanted.db, tw.relative, tw.absolute);
  }
}

class Conv2d : public ::testing::TestWithParam<DType> {};

TEST_P(Conv2d, MatchesTheFormula) {
  for (const Case& c : cases())
    for (ConvAlgorithm a : {ConvAlgorithm::kAuto, ConvAlgorithm::kDirect, ConvAlgorithm::kGemm})
      expect_matches(c, GetParam(), a);
}

TEST_P(Conv2d, MatchesTheFormulaWithThreadsOfItsOwnChoice) {
  set_deterministic(false);
  set_num_threads(3);
  for (const Case& c : cases()) expect_matches(c, GetParam(), ConvAlgorithm::kAuto);
  set_num_threads(0);
  set_deterministic(true);
}

TEST_P(Conv2d, ReluInOneGoIsReluAfterwards) {
  const Tensor x = random_tensor({2, 3, 6, 6}, 1, GetParam());
  const Tensor w = random_tensor({8, 3, 3, 3}, 2, GetParam());
  const Tensor b = random_tensor({8}, 3, GetParam());
  const Tensor plain = testing::to_f64(kernels::conv2d_forward(x, w, b));
  const Tensor y = testing::to_f64(kernels::conv2d_forward(x, w, b, {}, true));
  for (std::int64_t i = 0; i < y.numel(); ++i)
    EXPECT_NEAR(y.data<double>()[i], std::max(0.0, plain.data<double>()[i]), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(DTypes, Conv2d, ::testing::Values(kF32, kF64, kF16, kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

// pytorch/pytorch#82060: strides of a single channel say nothing about the layout.
TEST(Conv2dLayout, AnyPairOfLayoutsGivesTheSame) {
  const std::vector<float> wanted = {12, 21, 16, 27, 45, 33, 24, 39, 28};
  for (MemoryFormat fx : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast})
    for (MemoryFormat fw : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
      Tensor x = empty({1, 1, 3, 3}, {.format = fx}), w = full({1, 1, 3, 3}, 1, {.format = fw});
      for (int i = 0; i < 9; ++i) x.data<float>()[i] = static_cast<float>(i + 1);
      const Conv2dOptions o{.padding = {1, 1}};
      EXPECT_CLOSE(kernels::conv2d_forward(x, w, {}, o), tensor(wanted, {1, 1, 3, 3}), 0, 0);
      const Tensor dy = full({1, 1, 3, 3}, 1, {.format = fx});
      EXPECT_CLOSE(kernels::conv2d_backward_weights(dy, x, {1, 1, 3, 3}, false, o).dw,
                   tensor(wanted, {1, 1, 3, 3}), 0, 0);
    }
  const Tensor x = random_tensor({2, 6, 5, 4}, 1, kF32), w = random_tensor({4, 6, 3, 3}, 2, kF32);
  const Tensor y = kernels::conv2d_forward(x, w, {});
  for (const Tensor& xi : {x, x.contiguous(MemoryFormat::kChannelsLast)})
    for (const Tensor& wi : {w, w.contiguous(MemoryFormat::kChannelsLast)})
      EXPECT_SAME_BITS(kernels::conv2d_forward(xi, wi, {}), y);
  // H = W = 1: both layouts at once.
  const Tensor point = random_tensor({3, 5, 1, 1}, 1, kF32);
  EXPECT_SAME_BITS(kernels::conv2d_forward(point, random_tensor({2, 5, 1, 1}, 2, kF32), {}),
                   kernels::conv2d_forward(point.contiguous(MemoryFormat::kChannelsLast),
                                           random_tensor({2, 5, 1, 1}, 2, kF32), {}));
}

// FluxML/NNlib.jl#763: gradients of an empty batch are zeros, not what memory held before.
TEST(Conv2dEmpty, GradientsOfAnEmptyBatchAreZero) {
  for (int threads : {1, 8}) {
    set_num_threads(threads);
    { const Tensor dirty = full({4, 3, 3, 3}, NAN), dirty_bias = full({4}, NAN); }
    const Tensor x = empty({0, 3, 8, 8}), dy = empty({0, 4, 6, 6});
    EXPECT_EQ(kernels::conv2d_forward(x, ones({4, 3, 3, 3}), ones({4})).shape(),
              Shape({0, 4, 6, 6}));
    const auto g = kernels::conv2d_backward_weights(dy, x, {4, 3, 3, 3}, true);
    EXPECT_SAME_BITS(g.dw, zeros({4, 3, 3, 3}));
    EXPECT_SAME_BITS(g.db, zeros({4}));
    EXPECT_EQ(kernels::conv2d_backward_data(dy, ones({4, 3, 3, 3}), x.shape()).shape(), x.shape());
  }
  set_num_threads(0);
}

// pytorch/pytorch#88718
TEST(Conv2dThreads, DeterministicModeGivesTheSameBitsForAnyNumber) {
  for (DType dtype : {kF32, kBF16, kF64}) {
    const Tensor x = random_tensor({67, 8, 9, 9}, 1, dtype);
    const Tensor w = random_tensor({24, 8, 3, 3}, 2, dtype), b = random_tensor({24}, 3, dtype);
    const Tensor dy = random_tensor({67, 24, 7, 7}, 4, dtype);
    std::vector<Tensor> first;
    for (int threads : {1, 2, 3, 6}) {
      set_num_threads(threads);
      const auto g = kernels::conv2d_backward_weights(dy, x, w.shape(), true);
      const std::vector<Tensor> now = {kernels::conv2d_forward(x, w, b),
                                       kernels::conv2d_backward_data(dy, w, x.shape()), g.dw, g.db};
      if (first.empty()) first = now;
      for (std::size_t i = 0; i < now.size(); ++i) EXPECT_SAME_BITS(now[i], first[i]);
    }
  }
  set_num_threads(0);
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Conv2dErrors, NameTheShapes) {
  const Tensor x = empty({2, 3, 8, 8});
  const std::string groups = error_of([&] { kernels::conv2d_forward(x, empty({4, 2, 3, 3}), {}); });
  EXPECT_NE(groups.find("(2, 3, 8, 8)"), std::string::npos) << groups;
  EXPECT_NE(groups.find("(4, 2, 3, 3)"), std::string::npos) << groups;
  EXPECT_THROW(kernels::conv2d_forward(x, empty({4, 3, 9, 9}), {}), Error);
  EXPECT_THROW(kernels::conv2d_forward(x, empty({4, 3, 3, 3}), empty({5})), Error);
  EXPECT_THROW(kernels::conv2d_forward(x, empty({4, 3, 3, 3}, {.dtype = kBF16}), {}), Error);
  EXPECT_THROW(kernels::conv2d_forward(x, empty({4, 3, 3, 3}), {}, {.stride = {0, 1}}), Error);
}

}  // namespace
}  // namespace lockstep
