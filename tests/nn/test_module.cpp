// The module tree: names, order, sharing, modes, state dicts.
#include "lockstep/nn/module.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/core/safetensors.h"
#include "support/expect_close.h"

namespace lockstep::nn {
namespace {

struct LeafImpl : Module {
  explicit LeafImpl(double value = 1, bool with_buffer = false) {
    weight = register_parameter("weight", full({2, 3}, value));
    bias = register_parameter("bias", full({2}, -value));
    if (with_buffer) count = register_buffer("count", tensor<std::int64_t>({7}));
  }
  double forward(double x) { return x + weight.data().data<float>()[0]; }
  Variable weight, bias, count;
};
LOCKSTEP_MODULE(Leaf);

struct PairImpl : Module {
  PairImpl() {
    scale = register_parameter("scale", ones({1}));
    first = register_module("first", Leaf(2.0, true));
    second = register_module("second", Leaf(3.0));
  }
  Variable scale;
  Leaf first{nullptr}, second{nullptr};
};
LOCKSTEP_MODULE(Pair);

std::vector<std::string> names(const NamedVariables& variables) {
  std::vector<std::string> result;
  for (const auto& [name, variable] : variables) result.push_back(name);
  return result;
}

using Names = std::vector<std::string>;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ModuleHolder, IsAHandle) {
  Leaf empty_leaf{nullptr};
  EXPECT_TRUE(empty_leaf.is_empty());
  EXPECT_FALSE(empty_leaf);
  EXPECT_THROW(empty_leaf->is_training(), Error);
  EXPECT_THROW(empty_leaf(1.0), Error);
  EXPECT_THROW(empty_leaf.ptr(), Error);

  Leaf leaf(5.0, true);
  const Leaf copy = leaf;
  EXPECT_TRUE(copy->weight.is(leaf->weight));
  EXPECT_EQ(copy(1.0), 6.0);
  EXPECT_EQ(copy->forward(2.0), 7.0);
  Leaf from_pointer = std::make_shared<LeafImpl>(4.0);
  EXPECT_EQ(from_pointer(0.0), 4.0);
  EXPECT_EQ(Leaf()(0.0), 1.0);
}

TEST(Module, NamesInOrderOfRegistration) {
  Pair net;
  EXPECT_EQ(names(net->named_parameters()),
            (Names{"scale", "first.weight", "first.bias", "second.weight", "second.bias"}));
  EXPECT_EQ(names(net->named_buffers()), Names{"first.count"});
  EXPECT_EQ(net->parameter_count(), 1 + 2 * 8);
  EXPECT_EQ(net->children().size(), 2U);
  EXPECT_EQ(net->named_children()[1].first, "second");
  Names paths;
  for (const auto& [path, module] : net->named_modules()) paths.push_back(path);
  EXPECT_EQ(paths, (Names{"", "first", "second"}));
  std::vector<const Module*> visited;
  net->apply([&](Module& module) { visited.push_back(&module); });
  EXPECT_EQ(visited, (std::vector<const Module*>{net->first.get(), net->second.get(), net.get()}));
}

TEST(Module, RegistrationErrors) {
  struct Net : Module {};
  Net net;
  net.register_parameter("w", ones({1}));
  EXPECT_NE(error_of([&] { net.register_buffer("w", ones({1})); }).find("'w'"), std::string::npos);
  EXPECT_THROW(net.register_parameter("", ones({1})), Error);
  EXPECT_THROW(net.register_parameter("a.b", ones({1})), Error);
  EXPECT_THROW(net.register_parameter("undefined", Variable()), Error);
  EXPECT_THROW(net.register_parameter("index", tensor<std::int64_t>({1})), Error);
  EXPECT_THROW(net.register_module("empty", Leaf(nullptr)), Error);
  auto inner = std::make_shared<Net>();
  auto outer = std::make_shared<Net>();
  outer->register_module("inner", inner);
  EXPECT_THROW(inner->register_module("outer", outer), Error);
  EXPECT_EQ(names(net.named_parameters()), Names{"w"});
}

TEST(Module, ModesAndGradients) {
  Pair net;
  EXPECT_TRUE(net->is_training());
  net->eval();
  EXPECT_FALSE(net->is_training() || net->first->is_training() || net->second->is_training());
  net->train();
  EXPECT_TRUE(net->is_training() && net->first->is_training() && net->second->is_training());

  for (Variable p : net->parameters()) p.set_grad(ones(p.shape()));
  net->zero_grad(false);
  EXPECT_SAME_BITS(net->scale.grad(), zeros({1}));
  net->zero_grad();
  for (const Variable& p : net->parameters()) EXPECT_FALSE(p.grad().defined());

  net->requires_grad_(false);
  for (const Variable& p : net->parameters()) EXPECT_FALSE(p.requires_grad());
  net->requires_grad_();
  EXPECT_TRUE(net->scale.requires_grad());
  EXPECT_FALSE(net->first->count.requires_grad());
}

TEST(Module, ToConvertsFloatingValuesEverywhere) {
  Pair net;
  const Variable held = net->first->weight;
  net->scale.set_grad(ones({1}));
  net->to(kBF16);
  EXPECT_EQ(held.dtype(), kBF16);
  EXPECT_CLOSE(held.data(), full({2, 3}, 2), 0, 0);
  EXPECT_TRUE(held.requires_grad());
  EXPECT_EQ(net->first->count.dtype(), kI64);
  EXPECT_FALSE(net->scale.grad().defined());
  net->to(kF64, /*recurse=*/false);
  EXPECT_EQ(net->scale.dtype(), kF64);
  EXPECT_EQ(held.dtype(), kBF16);
  EXPECT_THROW(net->to(kI64), Error);
}

// torch/torch7#716: a weight registered under two names must not be listed, and stepped, twice.
struct TiedImpl : Module {
  TiedImpl() {
    w = register_parameter("w", full({1}, 1));
    register_parameter("alias", w);
    register_parameter("other", full({1}, 2));
  }
  Variable w;
};
LOCKSTEP_MODULE(Tied);

TEST(Module, SharedVariablesAreListedOnce) {
  Tied net;
  EXPECT_EQ(names(net->named_parameters()), (Names{"w", "other"}));
  EXPECT_EQ(net->parameters().size(), 2U);
  // A shared child counts once too, under its first name.
  struct Twice : Module {};
  Twice twice;
  Leaf leaf(1.0, true);
  twice.register_module("a", leaf);
  twice.register_module("b", leaf);
  EXPECT_EQ(names(twice.named_parameters()), (Names{"a.weight", "a.bias"}));
  EXPECT_EQ(names(twice.named_buffers()), Names{"a.count"});
  EXPECT_EQ(twice.named_modules().size(), 2U);
}

TEST(Module, SharedVariablesInStateDicts) {
  Tied net;
  StateDict state = net->state_dict();
  EXPECT_EQ(state.size(), 3U);
  EXPECT_TRUE(state.at("w").shares_storage_with(state.at("alias")));

  net->load_state_dict({{"w", full({1}, 5)}, {"alias", full({1}, 5)}, {"other", full({1}, 6)}});
  EXPECT_EQ(net->w.item(), 5);
  net->load_state_dict({{"alias", full({1}, 8)}, {"other", full({1}, 6)}});  // one name will do
  EXPECT_EQ(net->w.item(), 8);
  const std::string error = error_of([&] {
    net->load_state_dict({{"w", full({1}, 1)}, {"alias", full({1}, 2)}, {"other", full({1}, 6)}});
  });
  EXPECT_NE(error.find("w and alias"), std::string::npos) << error;
  EXPECT_EQ(net->w.item(), 8);
}

TEST(Module, StateDictRoundTripThroughAFile) {
  const std::string path = ::testing::TempDir() + "/lockstep_module_state.safetensors";
  Pair net;
  net->first->count.data().data<std::int64_t>()[0] = 42;
  save_safetensors(path, net->state_dict());
  Pair loaded;
  for (const Variable& p : loaded->parameters()) zero_(p.data());
  loaded->load_state_dict(load_safetensors(path));
  const StateDict a = net->state_dict(), b = loaded->state_dict();
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    EXPECT_SAME_BITS(b.at(name), value);
    EXPECT_FALSE(b.at(name).shares_storage_with(value));
  }
  EXPECT_EQ(loaded->first->count.item<std::int64_t>(), 42);
  std::remove(path.c_str());
}

TEST(Module, LoadingListsEveryDifferenceAndChangesNothing) {
  Pair net;
  StateDict state = net->state_dict();
  for (auto& [name, value] : state) value = value.clone();
  state.at("scale") = full({1}, 9);
  state.at("second.weight") = ones({3, 2});
  state.erase("first.bias");
  state["third.weight"] = ones({1});
  const std::string error = error_of([&] { net->load_state_dict(state); });
  for (const char* part : {"missing keys: first.bias", "unexpected keys: third.weight",
                           "second.weight is (2, 3) here but (3, 2)"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(net->scale.item(), 1);

  // Not strict: keys may differ, shapes may not.
  EXPECT_THROW(net->load_state_dict(state, false), Error);
  state.at("second.weight") = full({2, 3}, 4);
  const IncompatibleKeys keys = net->load_state_dict(state, false);
  EXPECT_EQ(keys.missing, Names{"first.bias"});
  EXPECT_EQ(keys.unexpected, Names{"third.weight"});
  EXPECT_EQ(net->scale.item(), 9);
  EXPECT_SAME_BITS(net->second->weight.data(), full({2, 3}, 4));
}

TEST(Module, LoadingConvertsDtypesAndLayouts) {
  Leaf leaf(1.0);
  const Tensor transposed = tensor<double>({1, 2, 3, 4, 5, 6}, {3, 2}).t();
  leaf->load_state_dict({{"weight", transposed}, {"bias", full({2}, 0.5, {.dtype = kF16})}});
  EXPECT_SAME_BITS(leaf->weight.data(), tensor<float>({1, 3, 5, 2, 4, 6}, {2, 3}));
  EXPECT_SAME_BITS(leaf->bias.data(), full({2}, 0.5));
}

}  // namespace
}  // namespace lockstep::nn
