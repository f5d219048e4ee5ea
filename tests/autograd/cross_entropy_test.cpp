#include "lockstep/autograd/ops/cross_entropy.h"

#include <limits>

#include "autograd/reference_case.h"
#include "lockstep/autograd/gradcheck.h"
#include "lockstep/autograd/ops/nll_loss.h"
#include "lockstep/autograd/ops/softmax.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/cross_entropy.h"

namespace lockstep {
namespace {

using namespace testing;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct NamedReduction {
  const char* name;
  Reduction value;
};
constexpr NamedReduction kReductions[] = {
    {"mean", Reduction::kMean}, {"sum", Reduction::kSum}, {"none", Reduction::kNone}};

Tensor labels(std::initializer_list<std::int64_t> values) { return tensor<std::int64_t>(values); }

TEST(CrossEntropy, MatchesPyTorch) {
  const Reference reference("losses");
  const Tensor& target = reference["cross_entropy/target"];
  for (const auto& dtype : kFloatingNames)
    for (const auto& [name, reduction] : kReductions) {
      for (const char* smoothing : {"0.0", "0.2"})
        for (int weighted : {0, 1}) {
          ClassLossOptions options{.reduction = reduction};
          options.label_smoothing = smoothing[2] == '2' ? 0.2 : 0;
          const std::string path = "cross_entropy/" + dtype + "/" + name + "/" + smoothing + "/" +
                                   std::to_string(weighted);
          if (weighted)
            options.weight =
                filled_with(reference["cross_entropy/weight"], reference[path + "/x"].dtype());
          check_case(reference, path, {"x"}, tolerance_of(dtype),
                     [&](const auto& v) { return cross_entropy(v[0], target, options); });
        }
      const Tensor& image_target = reference["cross_entropy/image_target"];
      const ClassLossOptions image{
          .reduction = reduction, .ignore_index = 2, .label_smoothing = 0.1};
      check_case(reference, "cross_entropy_image/" + dtype + "/" + name, {"x"}, tolerance_of(dtype),
                 [&](const auto& v) { return cross_entropy(v[0], image_target, image); });
    }
}

TEST(NllLoss, MatchesPyTorch) {
  const Reference reference("losses");
  for (const auto& dtype : kFloatingNames)
    for (const auto& [name, reduction] : kReductions) {
      ClassLossOptions options{.reduction = reduction};
      const std::string path = "nll_loss/" + dtype + "/" + name;
      options.weight =
          filled_with(reference["cross_entropy/weight"], reference[path + "/x"].dtype());
      check_case(reference, path, {"x"}, tolerance_of(dtype), [&](const auto& v) {
        return nll_loss(v[0], reference["cross_entropy/target"], options);
      });
    }
}

TEST(CrossEntropy, GradientsMatchFiniteDifferences) {
  const Tensor x = tensor<double>({0.3, -1, 2, 0.5, 0.1, -0.7, 1.5, 0.2, 0.9, -2, 0, 1}, {4, 3});
  const Tensor target = labels({2, 0, -100, 1});
  for (const auto& [name, reduction] : kReductions)
    for (double smoothing : {0.0, 0.3})
      for (bool weighted : {false, true}) {
        ClassLossOptions options{.reduction = reduction, .label_smoothing = smoothing};
        if (weighted) options.weight = tensor<double>({0.5, 2, 1.25});
        EXPECT_EQ(
            gradcheck([&](const auto& v) { return cross_entropy(v[0], target, options); }, {x}),
            "");
        EXPECT_EQ(gradcheck([&](const auto& v) { return nll_loss(v[0], target, options); }, {x}),
                  "");
      }
}

TEST(CrossEntropy, IsNllOfLogSoftmax) {
  const Variable x(tensor<float>({1, 2, 3, -4, 0, 9}, {2, 3}));
  const Tensor target = labels({0, 2});
  EXPECT_CLOSE(cross_entropy(x, target).data(), nll_loss(log_softmax(x, 1), target).data(), 1e-6,
               1e-7);
}

TEST(CrossEntropy, TargetsOfEveryIndexDtypeAndSingleRows) {
  const Variable x(tensor<float>({1, 2, 3, -4, 0, 9}, {2, 3}));
  const double wanted = cross_entropy(x, labels({0, 2})).item();
  EXPECT_EQ(cross_entropy(x, tensor<std::int32_t>({0, 2})).item(), wanted);
  EXPECT_EQ(cross_entropy(x, tensor<std::uint8_t>({0, 2})).item(), wanted);
  const Variable row(tensor<float>({1, 2, 3}), true);
  const Variable loss = cross_entropy(row, tensor<std::int64_t>({2}, {}));
  EXPECT_NEAR(loss.item(), 0.40760597, 1e-6);
  loss.backward();
  EXPECT_CLOSE(row.grad(), tensor<float>({0.09003057f, 0.24472848f, -0.33475906f}), 1e-6, 0);
}

// pytorch/pytorch#70348: the mean over no counted row was NaN and poisoned training.
TEST(CrossEntropy, OnlyIgnoredRowsGiveZeroAndZeroGradients) {
  Tensor logits = zeros({5, 5});
  for (std::int64_t i = 0; i < 25; ++i) logits.data<float>()[i] = static_cast<float>(i * i % 7);
  logits.data<float>()[3] = kNan;
  logits.data<float>()[8] = -kInf;
  const Tensor target = labels({-100, -100, -100, -100, -100});
  for (const auto& [name, reduction] : kReductions)
    for (double smoothing : {0.0, 0.1}) {
      const ClassLossOptions options{.reduction = reduction, .label_smoothing = smoothing};
      for (auto* loss_of : {&cross_entropy, &nll_loss}) {
        const Variable x(logits, true);
        const Variable loss = loss_of(x, target, options);
        EXPECT_CLOSE(loss.data(), zeros(loss.shape()), 0, 0);
        loss.backward(ones(loss.shape()));
        EXPECT_SAME_BITS(x.grad(), zeros({5, 5}));
      }
    }
  EXPECT_EQ(count_targets(target), 0);
  EXPECT_EQ(cross_entropy(zeros({0, 5}), zeros({0}, {kI64})).item(), 0);
}

// pytorch/pytorch#15508: an ignore_index outside the range of classes was read out of bounds.
TEST(CrossEntropy, IgnoreIndexOutsideTheClasses) {
  const Tensor target = labels({3, 9, 0, 2});
  ClassLossOptions options{.reduction = Reduction::kNone, .ignore_index = 9};
  const Variable x(zeros({4, 4}), true);
  const Variable rows = cross_entropy(x, target, options);
  EXPECT_CLOSE(rows.data(), tensor<float>({1.386294f, 0, 1.386294f, 1.386294f}), 1e-6, 0);
  rows.backward(ones({4}));
  for (int r = 0; r < 4; ++r) {
    double sum = 0;
    for (int c = 0; c < 4; ++c) {
      const double d = element(x.grad(), 4 * r + c);
      sum += d;
      if (r == 1) {
        EXPECT_EQ(d, 0);
      }
    }
    EXPECT_NEAR(sum, 0, 1e-7);
  }
  options.reduction = Reduction::kMean;
  EXPECT_NEAR(cross_entropy(zeros({4, 4}), target, options).item(), 1.386294, 1e-6);
  EXPECT_EQ(count_targets(target, 9), 3);
}

// pytorch/pytorch#73205: ignored rows counted in the uniform part of label smoothing.
TEST(CrossEntropy, LabelSmoothingLeavesIgnoredRowsOut) {
  const ClassLossOptions options{.label_smoothing = 0.2};
  const Tensor both = tensor<float>({2, 0, 0, 0}, {2, 2});
  EXPECT_NEAR(cross_entropy(both, labels({0, -100}), options).item(), 0.326928, 1e-6);
  EXPECT_NEAR(cross_entropy(tensor<float>({2, 0}, {1, 2}), labels({0}), options).item(), 0.326928,
              1e-6);
}

// huggingface/transformers#34242: a mean of ranks' means weighs their tokens unequally.
TEST(CrossEntropy, SumAndCountGiveTheWeightedMeanOverRanks) {
  const auto rank = [](std::int64_t tokens, double mean_loss) {
    // Two classes with logits (0, z) and target 0: loss log(1 + e^z) = mean_loss.
    const double z = std::log(std::exp(mean_loss) - 1);
    Tensor x = zeros({tokens, 2}, {kF64});
    for (std::int64_t r = 0; r < tokens; ++r) x.data<double>()[2 * r + 1] = z;
    return x;
  };
  double sum = 0;
  std::int64_t count = 0;
  for (const Tensor& x : {rank(100, 0.5), rank(900, 0.3)}) {
    const Tensor target = zeros({x.size(0)}, {kI64});
    sum += cross_entropy(x, target, {.reduction = Reduction::kSum}).item();
    count += count_targets(target);
  }
  EXPECT_NEAR(sum / static_cast<double>(count), 0.32, 1e-12);
}

TEST(CrossEntropy, HugeAndInfiniteLogits) {
  const Variable x(tensor<float>({1e4f, -1e4f, 0, 1e4f, -kInf, 0}, {2, 3}), true);
  const Variable loss = cross_entropy(x, labels({1, 0}), {.reduction = Reduction::kNone});
  EXPECT_CLOSE(loss.data(), tensor<float>({2e4f, 0}), 0, 0);
  loss.backward(ones({2}));
  EXPECT_CLOSE(x.grad(), tensor<float>({1, -1, 0, 0, 0, 0}, {2, 3}), 0, 0);
  EXPECT_EQ(cross_entropy(tensor<float>({-kInf, 0}, {1, 2}), labels({0})).item(), kInf);
}

TEST(CrossEntropy, NanSpoilsItsRowOnly) {
  const Variable x(tensor<float>({kNan, 0, 0, 0, 1, 2}, {2, 3}), true);
  const Variable loss = cross_entropy(x, labels({1, 2}), {.reduction = Reduction::kNone});
  EXPECT_TRUE(std::isnan(element(loss.data(), 0)));
  EXPECT_NEAR(element(loss.data(), 1), 0.40760597, 1e-6);
  loss.backward(ones({2}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(element(x.grad(), i)), i < 3);
}

TEST(CrossEntropy, UpstreamGradientScales) {
  const Tensor logits = tensor<float>({1, 2, 3, -4, 0, 9}, {2, 3});
  const Variable a(logits, true), b(logits, true);
  cross_entropy(a, labels({0, 1})).backward();
  cross_entropy(b, labels({0, 1})).backward(full({}, 65536));
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(element(b.grad(), i), 65536 * element(a.grad(), i), 65536 * 1e-7);
}

TEST(CrossEntropy, WeightsThatRemoveEveryRow) {
  ClassLossOptions options;
  options.weight = tensor<float>({0, 1});
  const Variable x(zeros({2, 2}), true);
  const Variable loss = cross_entropy(x, labels({0, 0}), options);
  EXPECT_EQ(loss.item(), 0);
  loss.backward();
  EXPECT_SAME_BITS(x.grad(), zeros({2, 2}));
}

TEST(CrossEntropy, SameBitsForAnyNumberOfThreads) {
  Tensor x = empty({1024, 97});
  Tensor target = empty({1024}, {kI64});
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.data<float>()[i] = static_cast<float>((i * 7919) % 1013) / 100;
  for (std::int64_t r = 0; r < 1024; ++r) target.data<std::int64_t>()[r] = r % 97;
  const int before = num_threads();
  std::vector<Tensor> losses, gradients;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Variable v(x, true);
    const Variable loss = cross_entropy(v, target, {.label_smoothing = 0.1});
    loss.backward();
    losses.push_back(loss.data());
    gradients.push_back(v.grad());
  }
  set_num_threads(before);
  for (int i : {1, 2}) {
    EXPECT_SAME_BITS(losses[static_cast<std::size_t>(i)], losses[0]);
    EXPECT_SAME_BITS(gradients[static_cast<std::size_t>(i)], gradients[0]);
  }
}

TEST(CrossEntropy, Errors) {
  const auto expect = [](const std::string& message, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(error_of([] {
           cross_entropy(zeros({3, 10}), labels({1, 10, 2}));
         }),
         {"cross_entropy", "row 1", "target 10", "10 classes"});
  expect(error_of([] {
           nll_loss(zeros({3, 10}), labels({1, 2, -1}));
         }),
         {"nll_loss", "row 2", "target -1", "10 classes"});
  expect(error_of([] {
           cross_entropy(zeros({3, 10}), labels({1, 2}));
         }),
         {"(3, 10)", "(2,)", "(3,)"});
  expect(error_of([] { cross_entropy(zeros({2, 3}), zeros({2})); }), {"f32", "i64"});
  expect(error_of([] { cross_entropy(zeros({2, 3}, {kI32}), labels({1, 2})); }), {"i32"});
  expect(error_of([] {
           cross_entropy(zeros({2, 3}), labels({1, 2}), {.label_smoothing = 1.5});
         }),
         {"label_smoothing", "1.5"});
  ClassLossOptions options;
  options.weight = zeros({4});
  expect(error_of([&] {
           cross_entropy(zeros({2, 3}), labels({1, 2}), options);
         }),
         {"(4,)", "3 classes"});
}

}  // namespace
}  // namespace lockstep
