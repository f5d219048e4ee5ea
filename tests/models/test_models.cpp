// The models: names, weights' bits, shapes, outputs against PyTorch's.
#include <gtest/gtest.h>

#include "lockstep/autograd/grad_mode.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/image_layout.h"
#include "lockstep/models/make_model.h"
#include "lockstep/models/mlp.h"
#include "lockstep/models/small_net.h"
#include "lockstep/models/toy_net.h"
#include "support/reference.h"

namespace lockstep::models {
namespace {

// huggingface/transformers#37932, facebookresearch/detr#297: one seed, one set of weights; here the
// very bits of the PyTorch module.
TEST(ToyNet, HasPyTorchsNamesAndInitialBits) {
  const testing::Reference reference("init");
  for (const std::uint64_t seed : {0, 42}) {
    manual_seed(seed);
    const ToyNet net;
    const nn::StateDict state = net->state_dict();
    EXPECT_EQ(state.size(), 12U + 5 * 5);
    EXPECT_EQ(net->parameter_count(), 5752714);
    for (const auto& [key, value] : state)
      testing::expect_same_bits_as_stored(reference, "toy_net/" + std::to_string(seed) + "/" + key,
                                          value);
  }
}

TEST(ToyNet, ParametersInOrderOfTheForwardPass) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : ToyNet()->named_parameters())
    if (name.ends_with("weight")) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"conv1.weight", "bn1.weight", "conv2.weight", "bn2.weight",
                                      "conv3.weight", "bn3.weight", "conv4.weight", "bn4.weight",
                                      "fc1.weight", "bn5.weight", "fc2.weight"}));
}

TEST(ToyNet, NoActivationChangesItsLayout) {
  const ToyNet net;
  const Variable x(zeros({2, 1, 28, 28}), /*requires_grad=*/true);
  const std::uint64_t before = kernels::activation_reorders();
  const Variable y = net(x);
  y.backward(ones({2, 10}));
  EXPECT_EQ(kernels::activation_reorders(), before);
}

TEST(Models, ByName) {
  const Tensor images = zeros({3, 1, 28, 28});
  for (const char* name : {"toy_net", "mlp", "small_net"})
    EXPECT_EQ(make_model(name)->forward(images).shape(), (Shape{3, 10})) << name;
  ModelOptions colour;
  colour.channels = 3;
  colour.height = colour.width = 32;
  colour.classes = 7;
  colour.hidden = {};
  for (const char* name : {"toy_net", "mlp", "small_net"})
    EXPECT_EQ(make_model(name, colour)->forward(zeros({2, 3, 32, 32})).shape(), (Shape{2, 7}))
        << name;
  EXPECT_EQ(make_model("mlp", colour)->named_parameters()[0].first, "layers.0.weight");
  try {
    make_model("toynet");
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const char* part : {"toynet", "toy_net", "mlp", "small_net"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(Models, RefuseImagesThatAreTooSmall) {
  ModelOptions tiny;
  tiny.height = 9;
  EXPECT_THROW(make_model("toy_net", tiny), Error);
  EXPECT_THROW(make_model("small_net", tiny), Error);
  EXPECT_THROW(Mlp(std::vector<std::int64_t>{3}), Error);
}

// The property that makes it the model for tests of data parallelism.
TEST(SmallNet, GradientOfABatchIsTheMeanOfItsHalves) {
  manual_seed(3);
  const SmallNet net;
  Generator g(4);
  const Tensor images = empty({4, 1, 28, 28}, {.dtype = kF64});
  uniform_(images, 0, 1, g);
  const Tensor dy = empty({4, 10}, {.dtype = kF64});
  uniform_(dy, -1, 1, g);
  net->to(kF64);
  net(images).backward(dy);
  std::vector<Tensor> whole;
  for (const Variable& p : net->parameters()) whole.push_back(p.grad().clone());
  net->zero_grad();
  for (const int start : {0, 2})
    net(images.slice(0, start, start + 2)).backward(dy.slice(0, start, start + 2).contiguous());
  std::size_t i = 0;
  for (const Variable& p : net->parameters()) EXPECT_CLOSE(p.grad(), whole[i++], 1e-10, 1e-12);
}

}  // namespace
}  // namespace lockstep::models
