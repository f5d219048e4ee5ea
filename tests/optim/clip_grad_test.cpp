#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/core/safetensors.h"
#include "lockstep/optim/clip_grad.h"
#include "optim/toy_params.h"
#include "support/expect_close.h"

namespace lockstep::optim {
namespace {

using lockstep::testing::scalar_param;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<Variable> params_with_grads(std::int64_t count, double value, DType dtype = kF32) {
  std::vector<Variable> params;
  for (std::int64_t i = 0; i < count; i += 100) {
    params.emplace_back(zeros({100}, {.dtype = dtype}), true);
    params.back().set_grad(full({100}, value, {.dtype = dtype}));
  }
  return params;
}

// pytorch/pytorch#46849
TEST(ClipGradNorm, ScalesDownToTheNorm) {
  auto params = params_with_grads(400, 2);
  EXPECT_DOUBLE_EQ(clip_grad_norm_(params, 1), 40);
  for (const Variable& p : params) EXPECT_CLOSE(p.grad(), full({100}, 0.05), 1e-6, 0);
}

TEST(ClipGradNorm, SquaresDoNotOverflow) {
  auto params = params_with_grads(400, 1e25);
  EXPECT_NEAR(clip_grad_norm_(params, 1) / 2e26, 1, 1e-6);
  for (const Variable& p : params) EXPECT_CLOSE(p.grad(), full({100}, 0.05), 1e-6, 0);
  for (const double value : {1e200, 1e-200, 1e-310}) {
    auto wide = params_with_grads(400, value, kF64);
    EXPECT_NEAR(clip_grad_norm_(wide, 1e-320) / (20 * value), 1, 1e-12) << value;
  }
  auto largest = params_with_grads(400, 3e38);
  clip_grad_norm_(largest, 1);
  EXPECT_CLOSE(largest[0].grad(), full({100}, 0.05), 1e-6, 0);
}

TEST(ClipGradNorm, InfIsReportedAndChangesNothing) {
  for (const double bad : {kInf, -kInf, std::nan("")}) {
    auto params = params_with_grads(400, 2);
    params[2].grad().data<float>()[57] = static_cast<float>(bad);
    std::vector<Tensor> before;
    for (const Variable& p : params) before.push_back(p.grad().clone());
    for (const double type : {2.0, 1.0, kInf}) {
      const double norm = clip_grad_norm_(params, 1, type);
      EXPECT_FALSE(std::isfinite(norm)) << type;
      EXPECT_TRUE(!std::isnan(bad) || std::isnan(norm)) << type;
    }
    EXPECT_THROW(clip_grad_norm_(params, 1, 2, true), Error);
    for (std::size_t i = 0; i < params.size(); ++i) EXPECT_SAME_BITS(params[i].grad(), before[i]);
  }
}

TEST(ClipGradNorm, NoGradientsHaveNormZero) {
  std::vector<Variable> params{scalar_param(1), Variable()};
  EXPECT_EQ(clip_grad_norm_(params, 1), 0);
  EXPECT_EQ(clip_grad_norm_({}, 1), 0);
  clip_grad_value_(params, 1);
  EXPECT_FALSE(params[0].grad().defined());
}

TEST(ClipGradNorm, LeavesSmallGradientsAlone) {
  auto params = params_with_grads(100, 0.01);
  const Tensor before = params[0].grad().clone();
  EXPECT_NEAR(clip_grad_norm_(params, 1), 0.1, 1e-7);
  EXPECT_SAME_BITS(params[0].grad(), before);
}

TEST(ClipGradNorm, ParameterListedTwiceCountsOnce) {
  Variable w = scalar_param(1);
  w.set_grad(full({1}, 3));
  const std::vector<Variable> params{w, w};
  EXPECT_EQ(clip_grad_norm_(params, 1), 3);
  EXPECT_NEAR(w.grad().item(), 1, 1e-6);
}

TEST(ClipGradNorm, AnyLayout) {
  Variable w(zeros({4, 6}), true);
  const Tensor wide = testing::wave({4, 12}, 1);
  const Tensor grad = wide.slice(1, 0, 12, 2);  // not dense
  const Tensor untouched = wide.slice(1, 1, 12, 2).clone();
  w.set_grad(grad);
  double sum = 0;
  for (std::int64_t i = 0; i < 24; ++i) sum += std::pow(testing::element(grad, i), 2);
  const Tensor before = w.grad().contiguous().clone();
  EXPECT_NEAR(clip_grad_norm_({&w, 1}, 0.5), std::sqrt(sum), 1e-6);
  for (std::int64_t i = 0; i < 24; ++i)
    EXPECT_NEAR(testing::element(w.grad(), i),
                testing::element(before, i) * 0.5 / (std::sqrt(sum) + 1e-6), 1e-7);
  EXPECT_SAME_BITS(wide.slice(1, 1, 12, 2), untouched);
}

TEST(ClipGrad, AsPyTorch) {
  const auto reference =
      load_safetensors(LOCKSTEP_SOURCE_DIR "/tests/reference/values/optimizers.safetensors");
  for (const std::string type : {"2", "1", "3", "inf", "value"}) {
    std::vector<Variable> params;
    for (int i = 0; i < 7; ++i) {
      params.emplace_back(reference.at("param." + std::to_string(i)).clone(), true);
      const auto grad = reference.find("grad.0." + std::to_string(i));
      if (grad != reference.end()) params.back().set_grad(grad->second.clone());
    }
    if (type == "value") {
      clip_grad_value_(params, 0.25);
    } else {
      const double p = type == "inf" ? kInf : type[0] - '0';
      const double expected = reference.at("clip." + type + ".norm").item();
      EXPECT_NEAR(clip_grad_norm_(params, 1.5, p) / expected, 1, 2e-6) << type;
    }
    int compared = 0;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const auto expected = reference.find("clip." + type + "." + std::to_string(i));
      if (expected == reference.end()) continue;
      EXPECT_CLOSE(params[i].grad(), expected->second, 2e-6, 1e-9) << type << " " << i;
      ++compared;
    }
    EXPECT_GE(compared, 5);
  }
}

TEST(ClipGrad, OptionsAreChecked) {
  const std::vector<Variable> none;
  EXPECT_THROW(clip_grad_norm_(none, -1), Error);
  EXPECT_THROW(clip_grad_norm_(none, 1, 0), Error);
  EXPECT_THROW(clip_grad_norm_(none, std::nan("")), Error);
  EXPECT_THROW(clip_grad_value_(none, -1), Error);
}

}  // namespace
}  // namespace lockstep::optim
