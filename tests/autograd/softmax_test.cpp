#include "lockstep/autograd/ops/softmax.h"

#include <limits>

#include "autograd/reference_case.h"
#include "lockstep/autograd/gradcheck.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/softmax.h"

namespace lockstep {
namespace {

using namespace testing;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Softmax, MatchesPyTorch) {
  const Reference reference("losses");
  for (const auto& dtype : kFloatingNames)
    for (const auto& [shape, axis] : std::vector<std::pair<std::string, int>>{
             {"5x37/1", 1}, {"4x3x10/1", 1}, {"2x8x3x5/1", 1}, {"6x7/0", 0}, {"40/0", 0}}) {
      check_case(reference, "softmax/" + dtype + "/" + shape, {"x"}, tolerance_of(dtype),
                 [&](const auto& v) { return softmax(v[0], axis); });
      check_case(reference, "log_softmax/" + dtype + "/" + shape, {"x"}, tolerance_of(dtype),
                 [&](const auto& v) { return log_softmax(v[0], axis); });
    }
}

TEST(Softmax, GradientsMatchFiniteDifferences) {
  const Tensor x = tensor<double>({0.3, -1, 2, 0.5, 0.1, -0.7, 1.5, 0.2, 0.9, -2, 0, 1}, {2, 3, 2});
  for (int axis : {0, 1, -1}) {
    EXPECT_EQ(gradcheck([&](const auto& v) { return softmax(v[0], axis); }, {x}), "");
    EXPECT_EQ(gradcheck([&](const auto& v) { return log_softmax(v[0], axis); }, {x}), "");
  }
}

TEST(Softmax, KeepsChannelsLast) {
  Tensor x = empty({2, 3, 4, 5}, {kF32, kCpu, MemoryFormat::kChannelsLast});
  zero_(x);
  const Variable v(x, true);
  const Variable y = softmax(v, 1);
  EXPECT_EQ(y.data().strides(), x.strides());
  y.backward(ones({2, 3, 4, 5}));
  EXPECT_EQ(v.grad().strides(), x.strides());
  EXPECT_TRUE(softmax(zeros({2, 3, 4, 5}), 1).data().is_contiguous());
}

TEST(Softmax, HugeAndInfiniteLogits) {
  EXPECT_CLOSE(softmax(tensor<float>({1e30f, -1e30f, 1e30f}), 0).data(),
               tensor<float>({0.5f, 0, 0.5f}), 0, 0);
  EXPECT_CLOSE(log_softmax(tensor<float>({10000, 10001, -kInf}), 0).data(),
               tensor<float>({-1.3132617f, -0.3132617f, -kInf}), 1e-6, 0);
  EXPECT_CLOSE(softmax(tensor<float>({0, -kInf, 0, -kInf}), 0).data(),
               tensor<float>({0.5f, 0, 0.5f, 0}), 0, 0);
  for (float bad : {kNan, kInf})
    EXPECT_CLOSE(softmax(tensor<float>({bad, bad, bad}), 0).data(),
                 tensor<float>({kNan, kNan, kNan}), 0, 0);
  EXPECT_CLOSE(softmax(tensor<float>({-kInf, -kInf}), 0).data(), tensor<float>({kNan, kNan}), 0, 0);
}

TEST(Softmax, OneNanSpoilsItsRowOnly) {
  for (std::int64_t at : {0, 5, 18}) {
    Tensor x = zeros({2, 19});
    x.data<float>()[at] = kNan;
    for (const Tensor& y : {softmax(x, 1).data(), log_softmax(x, 1).data()})
      for (std::int64_t i = 0; i < 38; ++i) EXPECT_EQ(std::isnan(element(y, i)), i < 19) << i;
  }
}

// sonos/tract#2587: a running sum in f16 stops moving at 2048.
TEST(Softmax, LongHalfRows) {
  for (DType dtype : {kF16, kBF16}) {
    const Tensor y = softmax(full({8192}, 3.0, {dtype}), 0).data();
    double sum = 0;
    for (std::int64_t i = 0; i < 8192; ++i) {
      ASSERT_EQ(element(y, i), 1.0 / 8192);
      sum += element(y, i);
    }
    EXPECT_EQ(sum, 1);
  }
}

TEST(Softmax, EmptyTensors) {
  for (const Shape& shape : {Shape{0, 4}, Shape{4, 0}, Shape{2, 0, 3}, Shape{0}})
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const Variable x(zeros(shape), true);
      softmax(x, axis).backward(zeros(shape));
      EXPECT_EQ(x.grad().shape(), shape);
      EXPECT_EQ(log_softmax(x, axis).shape(), shape);
    }
  EXPECT_EQ(softmax(tensor<float>({3}, {}), 0).item(), 1);
}

TEST(Softmax, SameBitsForAnyNumberOfThreads) {
  Tensor x = empty({301, 1000});
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.data<float>()[i] = static_cast<float>((i * 7919) % 1013) / 100;
  const int before = num_threads();
  set_num_threads(1);
  const Tensor y = kernels::softmax_forward(x, 1);
  const Tensor dx = kernels::softmax_backward(x, y, 1);
  for (int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_SAME_BITS(kernels::softmax_forward(x, 1), y);
    EXPECT_SAME_BITS(kernels::softmax_backward(x, y, 1), dx);
  }
  set_num_threads(before);
}

TEST(Softmax, Errors) {
  const std::string axis = error_of([] { softmax(zeros({2, 3}), 2); });
  EXPECT_NE(axis.find("axis 2"), std::string::npos) << axis;
  const std::string dtype = error_of([] { softmax(zeros({2}, {kI64}), 0); });
  EXPECT_NE(dtype.find("i64"), std::string::npos) << dtype;
}

}  // namespace
}  // namespace lockstep
