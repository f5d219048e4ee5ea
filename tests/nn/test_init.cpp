// Initial values against PyTorch's (tests/reference/make_init.py), bit for bit.
#include "lockstep/nn/init.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/nn/nn.h"
#include "support/reference.h"

namespace lockstep::nn {
namespace {

using init::FanMode;
using init::Nonlinearity;

const testing::Reference& reference() {
  static const testing::Reference values("init");
  return values;
}

class InitReference : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void expect(const std::string& name, const Tensor& actual) {
    testing::expect_same_bits_as_stored(reference(), name + "/" + std::to_string(GetParam()),
                                        actual);
  }
  void expect_module(const std::string& name, const Module& module) {
    const StateDict state = module.state_dict();
    const std::string prefix = name + "/" + std::to_string(GetParam()) + "/";
    std::set<std::string> stored;
    for (const auto& [key, value] : reference().all())
      if (key.starts_with(prefix))
        stored.insert(key.substr(prefix.size(), key.find('#') - prefix.size()));
    EXPECT_EQ(stored.size(), state.size()) << name;
    for (const auto& [key, value] : state)
      testing::expect_same_bits_as_stored(reference(), prefix + key, value);
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, InitReference, ::testing::Values(0, 42));

TEST_P(InitReference, Functions) {
  Generator g(GetParam());
  const Variable w(empty({6, 4, 3, 2}));
  init::kaiming_uniform_(w, 0, FanMode::kFanOut, Nonlinearity::kReLU, g);
  expect("kaiming_uniform", w.data());
  init::kaiming_uniform_(w, 0.2, FanMode::kFanIn, Nonlinearity::kLeakyReLU, g);
  expect("kaiming_uniform_leaky", w.data());
  init::kaiming_normal_(w, 0, FanMode::kFanIn, Nonlinearity::kTanh, g);
  expect("kaiming_normal", w.data());
  init::kaiming_normal_(w, 0, FanMode::kFanOut, Nonlinearity::kSELU, g);
  expect("kaiming_normal_out", w.data());
  init::xavier_uniform_(w, init::calculate_gain(Nonlinearity::kTanh), g);
  expect("xavier_uniform", w.data());
  init::xavier_normal_(w, 1, g);
  expect("xavier_normal", w.data());
  init::normal_(w, 0, 0.02, g);
  expect("normal", w.data());
}

TEST_P(InitReference, Layers) {
  manual_seed(GetParam());
  expect_module("linear", *Linear(20, 30));
  expect_module("linear_no_bias", *Linear(LinearOptions(7, 5).bias(false)));
  expect_module("conv", *Conv2d(Conv2dOptions(4, 8, {3, 5}).padding(1)));
  expect_module("conv_groups", *Conv2d(Conv2dOptions(6, 12, 3).groups(3)));
  expect_module("embedding", *Embedding(11, 6));
  expect_module("embedding_padding", *Embedding(EmbeddingOptions(5, 9).padding_idx(-2)));
  expect_module("batch_norm", *BatchNorm2d(5));
  expect_module("layer_norm", *LayerNorm(Shape{3, 4}));
}

TEST(Init, Gains) {
  const double gains[] = {init::calculate_gain(Nonlinearity::kLinear),
                          init::calculate_gain(Nonlinearity::kConv2d),
                          init::calculate_gain(Nonlinearity::kSigmoid),
                          init::calculate_gain(Nonlinearity::kTanh),
                          init::calculate_gain(Nonlinearity::kReLU),
                          init::calculate_gain(Nonlinearity::kSELU),
                          init::calculate_gain(Nonlinearity::kLeakyReLU),
                          init::calculate_gain(Nonlinearity::kLeakyReLU, std::sqrt(5.0))};
  EXPECT_SAME_BITS(tensor(std::span<const double>(gains), {8}), reference()["gains"]);
}

TEST(Init, FansAndErrors) {
  const init::Fans fans = init::calculate_fans({8, 4, 3, 5});
  EXPECT_EQ(fans.in, 60);
  EXPECT_EQ(fans.out, 120);
  EXPECT_THROW(init::calculate_fans({8}), Error);
  EXPECT_THROW(init::xavier_normal_(Variable(empty({3}))), Error);
  EXPECT_THROW(init::normal_(Variable(empty({3})), 0, -1), Error);
  EXPECT_THROW(init::uniform_(Variable(empty({3}, {.dtype = kI64}))), Error);
}

TEST(Init, ConstantsAndEmptyWeights) {
  const Variable w(empty({2, 3}), /*requires_grad=*/true);
  init::constant_(w, 1.5);
  EXPECT_SAME_BITS(w.data(), full({2, 3}, 1.5));
  init::ones_(w);
  EXPECT_SAME_BITS(w.data(), ones({2, 3}));
  init::zeros_(w);
  EXPECT_SAME_BITS(w.data(), zeros({2, 3}));
  Generator g(3);
  init::kaiming_uniform_(Variable(empty({0, 3})), 0, FanMode::kFanIn, Nonlinearity::kReLU, g);
  init::default_weight_and_bias_(Variable(empty({2, 0})), Variable(), g);
  EXPECT_EQ(g.random(), Generator(3).random());
  EXPECT_EQ(Linear(LinearOptions(0, 4))->bias.data().shape(), Shape{4});
}

// facebookresearch/detr#297, karpathy/nanoGPT#22: ranks that set the same seed have the same
// weights, whatever their dropout stream and whatever another rank's thread draws meanwhile.
TEST(Init, RanksWithOneSeedHaveTheSameWeights) {
  const auto build = [](int rank, StateDict& state) {
    manual_seed(42);
    default_generator().set_stream(static_cast<std::uint64_t>(rank));
    const Sequential net(Conv2d(2, 8, 3), Dropout(0.5), Flatten(), Linear(32, 16));
    for (const auto& [name, value] : net->state_dict()) state[name] = value.clone();
  };
  StateDict states[2];
  {
    std::thread first([&] { build(0, states[0]); });
    std::thread second([&] { build(1, states[1]); });
    first.join();
    second.join();
  }
  ASSERT_EQ(states[0].size(), 4U);
  for (const auto& [name, value] : states[0]) EXPECT_SAME_BITS(states[1].at(name), value);
}

}  // namespace
}  // namespace lockstep::nn
