// Every layer's forward and backward against PyTorch's (tests/reference/make_layers.py).
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/autograd/ops/activation.h"
#include "lockstep/nn/nn.h"
#include "support/reference.h"

namespace lockstep::nn {
namespace {

const testing::Reference& reference() {
  static const testing::Reference values("layers");
  return values;
}

// Builds the layer with PyTorch's seed and compares result, gradients and state. tolerance is
// relative to values of about 1.
template <class Make>
void check_layer(const std::string& name, Make make, bool training = true,
                 double tolerance = 2e-6) {
  SCOPED_TRACE(name);
  const auto stored = [&](const std::string& key) { return reference()[name + "/" + key]; };
  manual_seed(7);
  auto layer = make();
  layer->train(training);
  const bool floating = is_floating(stored("x").dtype());
  const Variable x(stored("x").clone(), /*requires_grad=*/floating);
  const Variable y = layer(x);
  EXPECT_CLOSE(y.data(), stored("y"), tolerance, tolerance);
  if (y.requires_grad()) y.backward(stored("dy"));
  if (floating) {
    EXPECT_CLOSE(x.grad(), stored("dx"), tolerance * 4, tolerance * 4);
  }
  std::size_t keys = 0;
  for (const auto& [key, value] : layer->state_dict()) {
    SCOPED_TRACE(key);
    EXPECT_EQ(value.dtype(), stored("state/" + key).dtype());
    EXPECT_CLOSE(value, stored("state/" + key), tolerance, tolerance);
  }
  for (const auto& [key, parameter] : layer->named_parameters()) {
    SCOPED_TRACE(key);
    ASSERT_TRUE(parameter.grad().defined());
    EXPECT_CLOSE(parameter.grad(), stored("grad/" + key), tolerance * 10, tolerance * 10);
  }
  for (const auto& [key, value] : reference().all()) keys += key.starts_with(name + "/state/");
  EXPECT_EQ(keys, layer->state_dict().size());
}

TEST(Layers, Linear) {
  check_layer("linear", [] { return Linear(6, 4); });
  check_layer("linear_3d", [] { return Linear(LinearOptions(6, 4).bias(false)); });
}

TEST(Layers, Conv2d) {
  check_layer("conv", [] { return Conv2d(4, 6, 3); });
  check_layer("conv_all", [] {
    return Conv2d(Conv2dOptions(4, 6, {3, 2})
                      .stride({2, 1})
                      .padding({1, 2})
                      .dilation({1, 2})
                      .groups(2)
                      .bias(false));
  });
}

TEST(Layers, BatchNorm) {
  check_layer("bn1d", [] { return BatchNorm1d(5); });
  check_layer("bn1d_3d", [] { return BatchNorm1d(5); });
  check_layer("bn2d", [] { return BatchNorm2d(BatchNorm2dOptions(4).momentum(0.3)); });
  check_layer("bn2d_average",
              [] { return BatchNorm2d(BatchNorm2dOptions(4).momentum(std::nullopt)); });
  check_layer(
      "bn2d_plain",
      [] { return BatchNorm2d(BatchNorm2dOptions(4).affine(false).track_running_stats(false)); },
      /*training=*/false);
  check_layer(
      "bn2d_eval", [] { return BatchNorm2d(BatchNorm2dOptions(4).eps(0.1)); },
      /*training=*/false);
  check_layer("bn2d_relu", [] { return Sequential(BatchNorm2d(4), ReLU()); });
}

TEST(Layers, LayerNorm) {
  check_layer("layer_norm", [] { return LayerNorm(Shape{3, 4}); });
  check_layer("layer_norm_no_bias",
              [] { return LayerNorm(LayerNormOptions(4).eps(1e-3).bias(false)); });
}

TEST(Layers, Embedding) {
  check_layer("embedding", [] { return Embedding(EmbeddingOptions(7, 3).padding_idx(2)); });
}

TEST(Layers, Pooling) {
  check_layer("max_pool", [] { return MaxPool2d(2); });
  check_layer("max_pool_all", [] {
    return MaxPool2d(MaxPool2dOptions({3, 2}).stride({2, 1}).padding({1, 0}));
  });
  check_layer("avg_pool", [] { return AvgPool2d(2); });
  check_layer("avg_pool_all", [] { return AvgPool2d(AvgPool2dOptions(3).stride(2).padding(1)); });
  check_layer("adaptive_avg_pool", [] { return AdaptiveAvgPool2d(Size2(3, 4)); });
  check_layer("adaptive_avg_pool_1", [] { return AdaptiveAvgPool2d(1); });
}

TEST(Layers, ShapesAndActivations) {
  check_layer("flatten", [] { return Flatten(); });
  check_layer("flatten_middle", [] { return Flatten(FlattenOptions().end_dim(2)); });
  check_layer("identity", [] { return Identity(); });
  check_layer("ReLU", [] { return ReLU(); });
  check_layer("GELU", [] { return GELU(); });
  check_layer("GELU_tanh", [] { return GELU(GELUOptions().approximate("tanh")); });
  check_layer("Sigmoid", [] { return Sigmoid(); });
  check_layer("Tanh", [] { return Tanh(); });
  check_layer("SiLU", [] { return SiLU(); });
  EXPECT_THROW(GELU(GELUOptions().approximate("erf")), Error);
}

TEST(Layers, Sequential) {
  check_layer("sequential", [] {
    return Sequential{Conv2d(Conv2dOptions(4, 3, 3).bias(false)),
                      BatchNorm2d(3),
                      ReLU(),
                      MaxPool2d(2),
                      Flatten(),
                      Linear(12, 5)};
  });
}

template <class Loss>
void check_loss(const std::string& name, const Loss& loss) {
  SCOPED_TRACE(name);
  const Variable x(reference()[name + "/x"].clone(), true);
  const Variable y = loss(x, reference()[name + "/target"]);
  EXPECT_CLOSE(y.data(), reference()[name + "/y"], 2e-6, 0);
  y.backward();
  EXPECT_CLOSE(x.grad(), reference()[name + "/dx"], 2e-6, 1e-7);
}

TEST(Layers, Losses) {
  check_loss("cross_entropy", CrossEntropyLoss());
  check_loss("cross_entropy_all", CrossEntropyLoss(CrossEntropyLossOptions()
                                                       .weight(tensor<float>({1, 2, 0.5, 3, 1}))
                                                       .ignore_index(2)
                                                       .label_smoothing(0.2)));
  check_loss("nll", NLLLoss());
  check_loss("mse", MSELoss());
  check_loss("mse_sum", MSELoss(MSELossOptions().reduction(Reduction::kSum)));
  check_loss("bce", BCEWithLogitsLoss());
  check_loss("bce_pos", BCEWithLogitsLoss(
                            BCEWithLogitsLossOptions().pos_weight(tensor<float>({1, 2, 3, 4, 5}))));
}

TEST(Layers, SequentialTakesNamesAndFunctions) {
  Sequential net(Functional(relu), [](const Variable& x) { return x; });
  net->push_back("last", Linear(3, 2));
  EXPECT_EQ(net->size(), 3U);
  EXPECT_EQ(net->named_parameters()[0].first, "last.weight");
  EXPECT_EQ(net(ones({4, 3})).shape(), (Shape{4, 2}));
  EXPECT_THROW((*net)[3], Error);
  EXPECT_THROW(net->push_back("last", ReLU()), Error);
  EXPECT_SAME_BITS(Sequential()(Variable(ones({2}))).data(), ones({2}));
}

TEST(Layers, FusedBatchNormAndReluHaveTheBitsOfBoth) {
  const Tensor x = reference()["bn2d/x"], dy = reference()["bn2d/dy"];
  const BatchNorm2d fused(4), plain(4);
  const Variable a(x.clone(), true), b(x.clone(), true);
  const Variable ya = fused->forward_relu(a), yb = relu(plain(b));
  EXPECT_SAME_BITS(ya.data(), yb.data());
  ya.backward(dy);
  yb.backward(dy);
  EXPECT_SAME_BITS(a.grad(), b.grad());
  EXPECT_SAME_BITS(fused->weight.grad(), plain->weight.grad());
  EXPECT_SAME_BITS(fused->bias.grad(), plain->bias.grad());
}

TEST(Layers, DropoutOnlyWhileTraining) {
  manual_seed(1);
  Dropout dropout(0.5);
  const Variable x(ones({1024}));
  const Tensor first = dropout(x).data(), second = dropout(x).data();
  std::int64_t kept = 0, equal = 0;
  for (std::int64_t i = 0; i < 1024; ++i) {
    const float value = first.data<float>()[i];
    ASSERT_TRUE(value == 0 || value == 2);
    kept += value == 2;
    equal += value == second.data<float>()[i];
  }
  EXPECT_NEAR(kept, 512, 80);  // five standard deviations
  EXPECT_NEAR(equal, 512, 80);
  dropout->eval();
  EXPECT_SAME_BITS(dropout(x).data(), x.data());
  EXPECT_THROW(Dropout(1.5), Error);
}

// mlpack/mlpack#2561: a batch norm predicts the same before and after saving and loading.
TEST(Layers, BatchNormSurvivesSavingAndLoading) {
  const std::string path = ::testing::TempDir() + "/lockstep_batch_norm.safetensors";
  BatchNorm1d norm(1);
  norm(tensor<float>({1, 3}, {2, 1}));
  EXPECT_NEAR(norm->running_mean.item(), 0.2, 1e-7);
  EXPECT_NEAR(norm->running_var.item(), 1.1, 1e-6);
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
  norm->eval();
  const Variable x(tensor<float>({2}, {1, 1}));
  EXPECT_NEAR(norm(x).item(), 1.716225, 2e-6);
  save_safetensors(path, norm->state_dict());
  BatchNorm1d loaded(1);
  loaded->load_state_dict(load_safetensors(path));
  loaded->eval();
  EXPECT_SAME_BITS(loaded(x).data(), norm(x).data());
  EXPECT_EQ(loaded->num_batches_tracked.item<std::int64_t>(), 1);
  std::remove(path.c_str());
}

TEST(Layers, RefuseWhatCannotFit) {
  EXPECT_THROW(Conv2d(Conv2dOptions(3, 4, 3).groups(2)), Error);
  EXPECT_THROW(Conv2d(Conv2dOptions(3, 4, 0)), Error);
  EXPECT_THROW(Conv2d(3, 4, 3)(ones({1, 2, 8, 8})), Error);
  EXPECT_THROW(Linear(-1, 2), Error);
  EXPECT_THROW(Linear(3, 2)(ones({4, 5})), Error);
  EXPECT_THROW(BatchNorm2d(3)(ones({4, 3})), Error);
  EXPECT_THROW(BatchNorm2d(3)(ones({4, 2, 5, 5})), Error);
  EXPECT_THROW(BatchNorm1d(3)(ones({1, 3})), Error);  // one value per channel
  EXPECT_THROW(Embedding(EmbeddingOptions(3, 2).padding_idx(3)), Error);
  EXPECT_THROW(Embedding(3, 2)(tensor<std::int64_t>({3})), Error);
}

// FluxML/NNlib.jl#763, pytorch/pytorch#29578: an empty batch has an empty result, zero gradients.
TEST(Layers, EmptyBatches) {
  const Sequential net(Conv2d(3, 4, 3), ReLU(), MaxPool2d(2), Flatten(), Linear(36, 5));
  const Variable x(empty({0, 3, 8, 8}), true);
  const Variable y = net(x);
  EXPECT_EQ(y.shape(), (Shape{0, 5}));
  y.backward(empty({0, 5}));
  EXPECT_EQ(x.grad().shape(), x.shape());
  for (const Variable& p : net->parameters()) EXPECT_SAME_BITS(p.grad(), zeros(p.shape()));
}

}  // namespace
}  // namespace lockstep::nn
