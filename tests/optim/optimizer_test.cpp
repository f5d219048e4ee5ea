#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/core/half.h"
#include "lockstep/optim/adamw.h"
#include "lockstep/optim/sgd.h"
#include "optim/toy_params.h"
#include "support/expect_close.h"

namespace lockstep::optim {
namespace {

using lockstep::testing::scalar_param;
using lockstep::testing::toy_params;
using lockstep::testing::wave;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// pytorch/pytorch#15530: v = mu * v + g, w -= lr * v; the other form gives -0.2.
TEST(SGD, RateStandsOutsideTheVelocity) {
  Variable w = scalar_param(0);
  SGD optimizer({w}, SGDOptions(0.1).momentum(0.9));
  w.set_grad(full({1}, 1));
  optimizer.step();
  EXPECT_FLOAT_EQ(w.item<float>(), -0.1f);
  optimizer.param_groups()[0].options().set_lr(0.01);
  optimizer.step();
  EXPECT_FLOAT_EQ(w.item<float>(), -0.119f);
}

// pytorch/pytorch#43259
TEST(Optimizer, ParametersWithoutGradientKeepTheirBytesUnderWeightDecay) {
  for (const bool adam : {false, true}) {
    Variable used = scalar_param(2), unused(wave({5, 3}, 1), true);
    const Tensor before = unused.data().clone();
    std::unique_ptr<Optimizer> optimizer;
    if (adam)
      optimizer =
          std::make_unique<AdamW>(std::vector{used, unused}, AdamWOptions(0.1).weight_decay(0.5));
    else
      optimizer = std::make_unique<SGD>(std::vector{used, unused},
                                        SGDOptions(0.1).momentum(0.9).weight_decay(0.5));
    for (int i = 0; i < 3; ++i) {
      used.set_grad(full({1}, 1));
      optimizer->step();
    }
    EXPECT_SAME_BITS(unused.data(), before);
    EXPECT_FALSE(unused.grad().defined());
    EXPECT_LT(used.item(), 2);
    const StateDict saved = optimizer->state_dict();
    for (const auto& [key, value] : saved) EXPECT_FALSE(key.starts_with("state.1.")) << key;
  }
}

// torch/torch7#716
TEST(Optimizer, ParameterListedTwiceIsSteppedOnce) {
  Variable w = scalar_param(1);
  SGD optimizer({w, w}, SGDOptions(0.1));
  EXPECT_EQ(optimizer.param_groups()[0].params().size(), 1u);
  w.set_grad(full({1}, 2));
  optimizer.step();
  EXPECT_FLOAT_EQ(w.item<float>(), 0.8f);
}

TEST(Optimizer, GroupsHaveTheirOwnOptions) {
  Variable a = scalar_param(1), b = scalar_param(1);
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector{a});
  groups.emplace_back(std::vector{b}, SGDOptions(0.5).weight_decay(1));
  SGD optimizer(groups, SGDOptions(0.1));
  a.set_grad(full({1}, 1));
  b.set_grad(full({1}, 1));
  optimizer.step();
  EXPECT_FLOAT_EQ(a.item<float>(), 0.9f);
  EXPECT_FLOAT_EQ(b.item<float>(), 0.0f);  // 1 - 0.5 * (1 + 1)

  Variable c = scalar_param(3);
  optimizer.add_param_group(OptimizerParamGroup({c}));
  optimizer.zero_grad();
  c.set_grad(full({1}, 1));
  optimizer.step();
  EXPECT_FLOAT_EQ(c.item<float>(), 2.9f);
  EXPECT_FLOAT_EQ(a.item<float>(), 0.9f);
}

TEST(Optimizer, AddParamGroupRefusesWhatItCannotStep) {
  Variable a = scalar_param(1);
  SGD optimizer({a}, SGDOptions(0.1));
  const auto add = [&](Variable p) {
    return error_of([&] { optimizer.add_param_group(OptimizerParamGroup({std::move(p)})); });
  };
  EXPECT_NE(add(a).find("already in another group"), std::string::npos);
  EXPECT_NE(add(Variable()).find("undefined"), std::string::npos);
  EXPECT_NE(add(Variable(arange(3))).find("i64"), std::string::npos);
  const Tensor strided = zeros({4, 4}).slice(1, 0, 4, 2);
  EXPECT_NE(add(Variable(strided)).find("not dense"), std::string::npos);
  EXPECT_NE(error_of([&] {
              optimizer.add_param_group(OptimizerParamGroup({scalar_param(1)}, AdamOptions()));
            }).find("another optimizer"),
            std::string::npos);
  EXPECT_EQ(optimizer.param_groups().size(), 1u);
}

TEST(Optimizer, OptionsAreChecked) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto sgd = [](const SGDOptions& options) {
    return error_of([&] { SGD({scalar_param(1)}, options); });
  };
  EXPECT_EQ(sgd(SGDOptions(-1)), "SGD: lr must be finite and not negative but is -1");
  EXPECT_NE(sgd(SGDOptions(kNaN)), "");
  EXPECT_NE(sgd(SGDOptions(kInf)), "");
  EXPECT_NE(sgd(SGDOptions(1).momentum(-0.1)), "");
  EXPECT_NE(sgd(SGDOptions(1).weight_decay(-0.1)), "");
  EXPECT_NE(sgd(SGDOptions(1).nesterov(true)), "");
  EXPECT_NE(sgd(SGDOptions(1).nesterov(true).momentum(0.9).dampening(0.1)), "");
  EXPECT_EQ(sgd(SGDOptions(0).nesterov(true).momentum(0.9)), "");
  const auto adam = [](const AdamOptions& options) {
    return error_of([&] { Adam({scalar_param(1)}, options); });
  };
  EXPECT_NE(adam(AdamOptions().betas({1.0, 0.9})), "");
  EXPECT_NE(adam(AdamOptions().betas({0.9, -0.1})), "");
  EXPECT_NE(adam(AdamOptions().eps(-1)), "");
  EXPECT_EQ(adam(AdamOptions().betas({0, 0})), "");
  EXPECT_NE(error_of([] { AdamW({scalar_param(1)}, AdamWOptions(-1)); }).find("AdamW"),
            std::string::npos);
  SGD optimizer({scalar_param(1)}, SGDOptions(0.1));
  EXPECT_THROW(optimizer.param_groups()[0].options().set_lr(-1e-9), Error);
  EXPECT_EQ(optimizer.param_groups()[0].lr(), 0.1);
}

TEST(Optimizer, ZeroGradDropsOrClears) {
  Variable w = scalar_param(1);
  SGD optimizer({w}, SGDOptions(0.1));
  w.set_grad(full({1}, 2));
  const Tensor grad = w.grad();
  optimizer.zero_grad(false);
  EXPECT_TRUE(w.grad().shares_storage_with(grad));
  EXPECT_EQ(grad.item(), 0);
  optimizer.zero_grad();
  EXPECT_FALSE(w.grad().defined());
}

TEST(Optimizer, StepBumpsTheVersionOfWhatItChanges) {
  Variable a = scalar_param(1), b = scalar_param(1);
  Adam optimizer({a, b});
  a.set_grad(full({1}, 1));
  const auto version_a = a.data().version(), version_b = b.data().version();
  optimizer.step();
  EXPECT_GT(a.data().version(), version_a);
  EXPECT_EQ(b.data().version(), version_b);
}

// Unscaling inside the step gives the same bits as unscaled gradients, for a power of two.
TEST(Optimizer, ScaledStepIsAStepOnScaledGradients) {
  std::vector<Variable> plain = toy_params(), scaled = toy_params();
  SGD a(plain, SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01));
  SGD b(scaled, SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01));
  for (int step = 0; step < 4; ++step) {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const Tensor grad = wave(plain[i].shape(), step);
      Tensor large = grad.clone();
      for (std::int64_t j = 0; j < large.numel(); ++j) large.data<float>()[j] *= 1024;
      plain[i].set_grad(grad);
      scaled[i].set_grad(large);
    }
    a.step();
    b.step_scaled(1.0 / 1024);
  }
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_SAME_BITS(plain[i].data(), scaled[i].data());
}

// The weight of a convolution may be channels-last while its gradient is not, and the reverse.
TEST(Optimizer, GradientMayHaveAnotherLayout) {
  const Tensor value = wave({4, 3, 2, 2}, 1), grad = wave({4, 3, 2, 2}, 2);
  Variable plain(value.clone(), true);
  Variable last(value.contiguous(MemoryFormat::kChannelsLast).clone(), true);
  ASSERT_FALSE(last.data().is_contiguous());
  SGD a({plain}, SGDOptions(0.1).momentum(0.9)), b({last}, SGDOptions(0.1).momentum(0.9));
  for (int i = 0; i < 3; ++i) {
    plain.set_grad(grad);
    last.set_grad(grad);
    a.step();
    b.step();
  }
  EXPECT_SAME_BITS(last.data(), plain.data());
  EXPECT_SAME_BITS(b.state_dict().at("state.0.momentum_buffer"),
                   a.state_dict().at("state.0.momentum_buffer"));
}

// Half parameters: state and arithmetic in f32, one rounding per step.
template <class T>
void half_step_rounds_once() {
  const std::int64_t n = 101;
  Variable half(wave({n}, 1, kDTypeOf<T>), true);
  const Tensor grad = wave({n}, 2, kDTypeOf<T>);
  std::vector<float> p(n), v(n, 0);
  for (std::int64_t i = 0; i < n; ++i) p[i] = static_cast<float>(half.data().template data<T>()[i]);
  SGD optimizer({half}, SGDOptions(0.25).momentum(0.5));
  for (int step = 0; step < 5; ++step) {
    half.set_grad(grad);
    optimizer.step();
    for (std::int64_t i = 0; i < n; ++i) {
      v[i] = 0.5f * v[i] + static_cast<float>(grad.data<T>()[i]);
      p[i] = static_cast<float>(static_cast<T>(p[i] - 0.25f * v[i]));
      ASSERT_EQ(static_cast<float>(half.data().template data<T>()[i]), p[i]) << step << " " << i;
    }
  }
  EXPECT_EQ(optimizer.state_dict().at("state.0.momentum_buffer").dtype(), kF32);
}
TEST(Optimizer, Float16StepRoundsOnce) { half_step_rounds_once<Half>(); }
TEST(Optimizer, BFloat16StepRoundsOnce) { half_step_rounds_once<BFloat16>(); }

TEST(Optimizer, NoParametersAtAll) {
  SGD optimizer(std::vector<Variable>{}, SGDOptions(0.1).momentum(0.9));
  optimizer.step();
  optimizer.zero_grad();
  optimizer.load_state_dict(optimizer.state_dict());
  EXPECT_EQ(optimizer.param_groups().size(), 1u);
}

}  // namespace
}  // namespace lockstep::optim
