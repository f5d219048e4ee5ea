#include <gtest/gtest.h>

#include "autograd/product.h"

namespace lockstep::testing {
namespace {

TEST(Hooks, SeeAndReplaceTheWholeGradient) {
  Variable a = leaf(3), b = leaf(5);
  Variable y = product(a, b);
  std::vector<float> seen;
  y.register_hook([&](const Tensor& dy) {
    seen.push_back(dy.item<float>());
    return full({1}, 10);
  });
  Variable z = product(y, y);
  z.backward();
  EXPECT_EQ(seen, std::vector<float>{30});
  EXPECT_EQ(grad_of(a), 50);
}

TEST(Hooks, LeafHookRunsBeforeAccumulation) {
  Variable a = leaf(3);
  a.register_hook([](const Tensor& dy) { return multiply(dy, full({1}, 2)); });
  product(a, a).backward();
  EXPECT_EQ(grad_of(a), 12);
}

TEST(Hooks, PostAccumulateRunsOncePerBackwardWithTheSum) {
  Variable a = leaf(3);
  std::vector<float> seen;
  a.register_post_accumulate_grad_hook([&](Variable& v) { seen.push_back(grad_of(v)); });
  product(a, a).backward();
  product(a, a).backward();
  EXPECT_EQ(seen, (std::vector<float>{6, 12}));
}

TEST(Hooks, LeavesRunBeforeEarlierOperations) {
  Variable first = leaf(2), last = leaf(3);
  std::vector<char> order;
  first.register_post_accumulate_grad_hook([&](Variable&) { order.push_back('f'); });
  last.register_post_accumulate_grad_hook([&](Variable&) { order.push_back('l'); });
  Variable m = product(first, leaf(1, false));
  m.register_hook([&](const Tensor&) {
    order.push_back('m');
    return Tensor();
  });
  product(m, last).backward();
  EXPECT_EQ(order, (std::vector<char>{'l', 'm', 'f'}));
}

TEST(Hooks, CanBeRemoved) {
  Variable a = leaf(3);
  int calls = 0;
  const auto gradient_hook = a.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  const auto post_hook = a.register_post_accumulate_grad_hook([&](Variable&) { ++calls; });
  product(a, a).backward();
  EXPECT_EQ(calls, 2);
  a.remove_hook(gradient_hook);
  a.remove_hook(post_hook);
  product(a, a).backward();
  EXPECT_EQ(calls, 2);
}

TEST(Hooks, MayRemoveThemselvesAndAddOthersWhileTheyRun) {
  Variable a = leaf(3);
  int calls = 0;
  std::uint64_t post = 0, pre = 0;
  post = a.register_post_accumulate_grad_hook([&](Variable& v) {
    ++calls;
    v.remove_hook(post);
    for (int i = 0; i < 20; ++i)
      v.register_post_accumulate_grad_hook([&](Variable&) { calls += 100; });
  });
  pre = a.register_hook([&](const Tensor&) {
    ++calls;
    a.remove_hook(pre);
    for (int i = 0; i < 20; ++i) a.register_hook([](const Tensor&) { return Tensor(); });
    return Tensor();
  });
  product(a, a).backward();
  EXPECT_EQ(calls, 2);
  product(a, a).backward();
  EXPECT_EQ(calls, 2 + 2000);
}

TEST(Hooks, RetainGradKeepsAResultsGradient) {
  Variable a = leaf(3);
  Variable y = product(a, a);
  y.retain_grad();
  product(y, y).backward();
  EXPECT_EQ(grad_of(y), 18);
}

TEST(Hooks, AnExceptionLeavesTheEngineUsable) {
  Variable a = leaf(3);
  const auto id =
      a.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("mine"); });
  EXPECT_THROW(product(a, a).backward(), std::runtime_error);
  EXPECT_TRUE(is_grad_enabled());
  a.remove_hook(id);
  product(a, a).backward();
  EXPECT_EQ(grad_of(a), 6);
}

}  // namespace
}  // namespace lockstep::testing
