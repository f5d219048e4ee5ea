#include <limits>

#include "autograd/reference_case.h"
#include "lockstep/autograd/gradcheck.h"
#include "lockstep/autograd/ops/bce_with_logits.h"
#include "lockstep/autograd/ops/mse_loss.h"
#include "lockstep/core/threads.h"

namespace lockstep {
namespace {

using namespace testing;

struct NamedReduction {
  const char* name;
  Reduction value;
};
constexpr NamedReduction kReductions[] = {
    {"mean", Reduction::kMean}, {"sum", Reduction::kSum}, {"none", Reduction::kNone}};

TEST(MseLoss, MatchesPyTorch) {
  const Reference reference("losses");
  for (const auto& dtype : kFloatingNames)
    for (const auto& [name, reduction] : kReductions)
      check_case(reference, "mse_loss/" + dtype + "/" + name, {"x", "t"}, tolerance_of(dtype),
                 [r = reduction](const auto& v) { return mse_loss(v[0], v[1], r); });
}

TEST(BceWithLogits, MatchesPyTorch) {
  const Reference reference("losses");
  for (const auto& dtype : kFloatingNames)
    for (const auto& [name, reduction] : kReductions)
      check_case(reference, "bce/" + dtype + "/" + name, {"x", "t"}, tolerance_of(dtype),
                 [r = reduction](const auto& v) {
                   return binary_cross_entropy_with_logits(v[0], v[1], {.reduction = r});
                 });
  const BceOptions weighted{.weight = reference["bce_weighted/weight"],
                            .pos_weight = reference["bce_weighted/pos_weight"]};
  check_case(reference, "bce_weighted", {"x", "t"}, {1e-12, 1e-13},
             [&](const auto& v) { return binary_cross_entropy_with_logits(v[0], v[1], weighted); });
}

TEST(ElementLoss, GradientsMatchFiniteDifferences) {
  const Tensor x = tensor<double>({0.3, -1, 2, 0.5, 0.1, -0.7}, {2, 3});
  const Tensor t = tensor<double>({0.2, 1, 0, 0.9, 0.4, 0.6}, {2, 3});
  for (const auto& [name, reduction] : kReductions) {
    EXPECT_EQ(gradcheck([r = reduction](const auto& v) { return mse_loss(v[0], v[1], r); }, {x, t}),
              "");
    const BceOptions options{.reduction = reduction,
                             .weight = tensor<double>({0.5, 2, 1}),
                             .pos_weight = tensor<double>({3, 0.25}, {2, 1})};
    EXPECT_EQ(
        gradcheck(
            [&](const auto& v) { return binary_cross_entropy_with_logits(v[0], v[1], options); },
            {x, t}),
        "");
  }
}

// pytorch/pytorch#16413: (n) against (n, 1) became n x n, and training failed without a word.
TEST(MseLoss, DoesNotBroadcast) {
  const Tensor x = tensor<float>({0, 2, 4});
  EXPECT_EQ(mse_loss(x, x).item(), 0);
  const std::string message = error_of([&] { mse_loss(x, x.view({3, 1})); });
  EXPECT_NE(message.find("(3,)"), std::string::npos) << message;
  EXPECT_NE(message.find("(3, 1)"), std::string::npos) << message;
  EXPECT_NE(error_of([&] { mse_loss(x, zeros({3}, {kF64})); }).find("f64"), std::string::npos);
  EXPECT_NE(error_of([&] { mse_loss(zeros({3}, {kI32}), zeros({3}, {kI32})); }).find("i32"),
            std::string::npos);
}

TEST(ElementLoss, EmptyTensors) {
  for (const auto& [name, reduction] : kReductions) {
    const Variable x(zeros({0, 4}), true);
    const Variable mse = mse_loss(x, zeros({0, 4}), reduction);
    mse.backward(zeros(mse.shape()));
    EXPECT_EQ(x.grad().shape(), (Shape{0, 4}));
    const Variable bce =
        binary_cross_entropy_with_logits(x, zeros({0, 4}), {.reduction = reduction});
    if (reduction != Reduction::kNone) {
      EXPECT_EQ(mse.item(), 0);
      EXPECT_EQ(bce.item(), 0);
    }
  }
}

TEST(BceWithLogits, LargeLogitsNeitherOverflowNorLosePrecision) {
  const Variable x(tensor<float>({1000, -1000, 1000, -1000, 20}), true);
  const Variable loss = binary_cross_entropy_with_logits(x, tensor<float>({1, 0, 0, 1, 1}),
                                                         {.reduction = Reduction::kNone});
  EXPECT_CLOSE(loss.data(), tensor<float>({0, 0, 1000, 1000, 2.0611537e-9f}), 1e-6, 0);
  loss.backward(ones({5}));
  EXPECT_CLOSE(x.grad(), tensor<float>({0, 0, 1, -1, -2.0611537e-9f}), 1e-6, 0);
}

TEST(ElementLoss, NanStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Variable x(tensor<float>({nan, 1}), true);
  mse_loss(x, zeros({2})).backward();
  EXPECT_TRUE(std::isnan(element(x.grad(), 0)));
  EXPECT_EQ(element(x.grad(), 1), 1);
  EXPECT_TRUE(std::isnan(binary_cross_entropy_with_logits(x, zeros({2})).item()));
}

TEST(MseLoss, HalfMeansDoNotOverflowInTheSum) {
  const Tensor x = full({300, 300}, 200, {kF16});
  EXPECT_EQ(mse_loss(x, zeros({300, 300}, {kF16})).item(), 40000);
}

TEST(MseLoss, KeepsTheLayoutOfImages) {
  const Tensor x = empty({2, 3, 4, 5}, {kF32, kCpu, MemoryFormat::kChannelsLast});
  zero_(x);
  const Variable v(x, true);
  const Variable loss = mse_loss(v, ones({2, 3, 4, 5}), Reduction::kNone);
  EXPECT_EQ(loss.data().strides(), x.strides());
  loss.backward(ones({2, 3, 4, 5}));
  EXPECT_EQ(v.grad().strides(), x.strides());
  EXPECT_CLOSE(v.grad(), full({2, 3, 4, 5}, -2), 0, 0);
}

TEST(MseLoss, SameBitsForAnyNumberOfThreads) {
  Tensor x = empty({100003});
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.data<float>()[i] = static_cast<float>((i * 7919) % 1013) / 100;
  const int before = num_threads();
  std::vector<double> losses;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    losses.push_back(mse_loss(x, zeros({100003})).item());
  }
  set_num_threads(before);
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

TEST(BceWithLogits, Errors) {
  const std::string shapes = error_of([] {
    binary_cross_entropy_with_logits(zeros({4}), zeros({4, 1}));
  });
  EXPECT_NE(shapes.find("(4, 1)"), std::string::npos) << shapes;
  const std::string weight = error_of([] {
    binary_cross_entropy_with_logits(zeros({4}), zeros({4}), {.weight = zeros({2, 4})});
  });
  EXPECT_NE(weight.find("(2, 4)"), std::string::npos) << weight;
}

}  // namespace
}  // namespace lockstep
