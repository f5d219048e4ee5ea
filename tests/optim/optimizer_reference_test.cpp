// Twenty steps of every optimizer against PyTorch's (tests/reference/make_optimizers.py).
#include <gtest/gtest.h>

#include <memory>

#include "lockstep/core/safetensors.h"
#include "lockstep/optim/adamw.h"
#include "lockstep/optim/lookahead.h"
#include "lockstep/optim/sgd.h"
#include "support/expect_close.h"

namespace lockstep::optim {
namespace {

using Params = std::vector<Variable>;
using Make = std::function<std::shared_ptr<Optimizer>(Params)>;

struct Case {
  const char* name;
  Make make;
  DType dtype = kF32;
};

Make sgd(SGDOptions options) {
  return [=](Params p) { return std::make_shared<SGD>(std::move(p), options); };
}
Make adam(AdamOptions options) {
  return [=](Params p) { return std::make_shared<Adam>(std::move(p), options); };
}
Make adamw(AdamWOptions options) {
  return [=](Params p) { return std::make_shared<AdamW>(std::move(p), options); };
}
Make lookahead(LookaheadOptions options) {
  return [=](Params p) {
    return std::make_shared<Lookahead>(
        std::make_shared<SGD>(std::move(p), SGDOptions(0.1).momentum(0.9).nesterov(true)), options);
  };
}

std::vector<Case> cases() {
  const SGDOptions nesterov = SGDOptions(0.1).momentum(0.9).nesterov(true);
  const AdamWOptions adamw_all =
      AdamWOptions(0.02).betas({0.7, 0.95}).weight_decay(0.3).amsgrad(true).maximize(true);
  return {
      {"sgd", sgd(SGDOptions(0.1))},
      {"sgd_decay", sgd(SGDOptions(0.1).weight_decay(0.01))},
      {"sgd_momentum", sgd(SGDOptions(0.1).momentum(0.9))},
      {"sgd_dampening", sgd(SGDOptions(0.1).momentum(0.9).dampening(0.3))},
      {"sgd_nesterov", sgd(nesterov)},
      {"sgd_nesterov_f64", sgd(nesterov), kF64},
      {"sgd_all",
       sgd(SGDOptions(0.05).momentum(0.8).weight_decay(0.02).nesterov(true).maximize(true))},
      {"adam", adam(AdamOptions(0.01))},
      {"adam_decay", adam(AdamOptions(0.01).weight_decay(0.1))},
      {"adam_amsgrad", adam(AdamOptions(0.01).betas({0.8, 0.99}).eps(1e-6).amsgrad(true))},
      {"adam_all",
       adam(AdamOptions(0.02).betas({0.5, 0.9}).weight_decay(0.05).amsgrad(true).maximize(true))},
      {"adamw", adamw(AdamWOptions(0.01))},
      {"adamw_all", adamw(adamw_all)},
      {"adamw_all_f64", adamw(adamw_all), kF64},
      {"lookahead", lookahead({5, 0.5, LookaheadForm::kPaper})},
      {"lookahead_first_sync", lookahead({6, 0.8, LookaheadForm::kFirstSync})},
  };
}

class OptimizerReference : public ::testing::TestWithParam<Case> {};

Tensor to_dtype(const Tensor& f32, DType dtype) {
  if (dtype == kF32) return f32;
  Tensor t = empty(f32.shape(), {.dtype = dtype});
  for (std::int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = f32.data<float>()[i];
  return t;
}

TEST_P(OptimizerReference, TwentyStepsAsPyTorch) {
  const Case& c = GetParam();
  const auto reference =
      load_safetensors(LOCKSTEP_SOURCE_DIR "/tests/reference/values/optimizers.safetensors");
  Params params;
  for (int i = 0; reference.contains("param." + std::to_string(i)); ++i)
    params.emplace_back(to_dtype(reference.at("param." + std::to_string(i)), c.dtype).clone(),
                        true);
  ASSERT_EQ(params.size(), 7u);
  const std::shared_ptr<Optimizer> optimizer = c.make(params);

  int compared = 0;
  for (int step = 0; step < 20; ++step) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      const auto grad = reference.find("grad." + std::to_string(step) + "." + std::to_string(i));
      params[i].set_grad(grad == reference.end() ? Tensor() : to_dtype(grad->second, c.dtype));
    }
    optimizer->step();
    if (step == 9) {
      OptimizerOptions& options = optimizer->param_groups()[0].options();
      options.set_lr(options.get_lr() * 0.5);
    }
    for (std::size_t i = 0; i < params.size(); ++i) {
      const auto expected = reference.find(std::string(c.name) + "." + std::to_string(step + 1) +
                                           "." + std::to_string(i));
      if (expected == reference.end()) continue;
      const double tolerance = c.dtype == kF64 ? 1e-13 : 4e-6;
      EXPECT_CLOSE(params[i].data(), expected->second, tolerance, tolerance)
          << c.name << " step " << step + 1 << " parameter " << i;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 3 * 7);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerReference, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lockstep::optim
