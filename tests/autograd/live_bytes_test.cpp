// What a graph holds, it gives back: no byte stays when its last handle has gone.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "autograd/product.h"
#include "lockstep/autograd/grad_mode.h"
#include "lockstep/autograd/ops/activation.h"
#include "lockstep/autograd/ops/cross_entropy.h"
#include "lockstep/autograd/ops/linear.h"
#include "lockstep/autograd/ops/view.h"
#include "lockstep/core/allocator.h"

namespace lockstep::testing {
namespace {

std::uint64_t live() { return CpuAllocator::instance().stats().live; }

constexpr std::int64_t kWidth = 256;
constexpr std::uint64_t kMatrix = kWidth * kWidth * sizeof(float);

Variable parameter() { return {ones({kWidth, kWidth}), true}; }

class LiveBytes : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(live(), before_); }
  std::uint64_t before_ = live();
};

TEST_F(LiveBytes, AGraphThatIsNeverRunBackwards) {
  const Variable w = parameter(), x(ones({kWidth, kWidth}));
  const std::uint64_t leaves = live();
  {
    const Variable y = relu(linear(relu(linear(x, w)), w));
    EXPECT_GE(live(), leaves + 2 * kMatrix);
  }
  EXPECT_EQ(live(), leaves);
}

TEST_F(LiveBytes, BackwardDropsWhatWasSavedThoughTheResultLives) {
  const Variable w = parameter(), x(ones({kWidth, kWidth}));
  const Variable y = linear(relu(linear(relu(linear(x, w)), w)), w);
  const std::uint64_t with_graph = live();
  EXPECT_GE(with_graph, 5 * kMatrix);
  y.backward(ones({kWidth, kWidth}));
  EXPECT_EQ(live(), 4 * kMatrix + before_) << "w, its gradient, x and y";
}

TEST_F(LiveBytes, ARetainedGraphGoesWithItsResult) {
  const Variable w = parameter();
  {
    const Variable y = product(product(w, w), w);
    const Tensor dy = ones({kWidth, kWidth});
    y.backward(dy, true);
    const std::uint64_t once = live();
    y.backward(dy, true);
    EXPECT_EQ(live(), once);
  }
  EXPECT_EQ(live(), 2 * kMatrix + before_);
}

TEST_F(LiveBytes, AnExceptionInTheMidstOfBackward) {
  const Variable w = parameter();
  {
    Variable middle = product(w, w);
    middle.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("hook"); });
    const Variable y = product(middle, w);
    EXPECT_THROW(y.backward(ones({kWidth, kWidth})), std::runtime_error);
  }
  Variable leaf = w;
  leaf.zero_grad();
  EXPECT_EQ(live(), kMatrix + before_);
}

TEST_F(LiveBytes, WithoutGradientsNothingIsSaved) {
  const Variable w = parameter();
  NoGradGuard guard;
  Variable y = w;
  for (int i = 0; i < 10; ++i) y = relu(linear(y, w));
  EXPECT_EQ(live(), 2 * kMatrix + before_);
}

TEST_F(LiveBytes, ThousandSmallStepsHoldNoMoreThanOne) {
  Variable w(ones({10, 16}), true), b(ones({10}), true);
  const Tensor target = arange(8);
  std::uint64_t first = 0;
  for (int step = 0; step < 1000; ++step) {
    cross_entropy(linear(ones({8, 16}), w, b), target).backward();
    w.zero_grad(step % 2 == 0);
    b.zero_grad(step % 2 == 0);
    if (step == 1) first = live();
  }
  EXPECT_EQ(live(), first);
}

TEST_F(LiveBytes, AGraphMayCrossThreads) {
  const Variable w = parameter();
  Variable y;
  std::thread([&] { y = product(product(w, w), w); }).join();
  y.backward(ones({kWidth, kWidth}));
  EXPECT_EQ(w.grad().data<float>()[7], 3);
  std::thread([graph = product(y.detach(), w), &y]() mutable {
    graph = Variable();
    y = Variable();
  }).join();
  EXPECT_EQ(live(), 2 * kMatrix + before_);
}

}  // namespace
}  // namespace lockstep::testing
