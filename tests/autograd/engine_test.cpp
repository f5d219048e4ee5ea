#include <gtest/gtest.h>

#include <thread>

#include "autograd/product.h"
#include "lockstep/autograd/gradcheck.h"
#include "support/expect_close.h"

namespace lockstep::testing {
namespace {

TEST(Engine, ProductRule) {
  Variable a = leaf(3), b = leaf(5);
  product(a, b).backward();
  EXPECT_EQ(grad_of(a), 5);
  EXPECT_EQ(grad_of(b), 3);
}

TEST(Engine, SharedInputsSum) {
  Variable a = leaf(3);
  Variable square = product(a, a);
  product(square, square).backward();  // a^4
  EXPECT_EQ(grad_of(a), 4 * 27);
}

TEST(Engine, AccumulatesOverBackwards) {
  Variable a = leaf(2), b = leaf(7);
  product(a, b).backward();
  product(a, b).backward();
  EXPECT_EQ(grad_of(a), 14);
  a.zero_grad(false);
  EXPECT_EQ(grad_of(a), 0);
  a.zero_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(Engine, DiamondRunsEachNodeOnce) {
  Variable x = leaf(2);
  Variable y = product(x, x);
  for (int i = 0; i < 30; ++i) y = product(y, leaf(1, false));
  // 2^20 paths: only a topological walk ends.
  Variable z = y;
  for (int i = 0; i < 20; ++i) z = product(product(z, leaf(0.5f, false)), leaf(2, false));
  z.backward();
  EXPECT_EQ(grad_of(x), 4);
}

TEST(Engine, ExponentialPathsRunOnce) {
  Variable x = leaf(1);
  Variable y = x;
  for (int i = 0; i < 24; ++i) y = product(y, y);  // x^(2^24)
  y.backward();
  EXPECT_EQ(grad_of(x), 16777216.f);
}

TEST(Engine, NoGradientNoGraph) {
  Variable a = leaf(2, false);
  Variable y = product(a, a);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_THROW(y.backward(), Error);
  Variable b = leaf(2);
  {
    NoGradGuard guard;
    EXPECT_FALSE(product(b, b).requires_grad());
    {
      EnableGradGuard enabled;
      EXPECT_TRUE(product(b, b).requires_grad());
    }
    EXPECT_FALSE(is_grad_enabled());
  }
  EXPECT_TRUE(product(b, b).requires_grad());
}

TEST(Engine, SecondBackwardIsAnErrorThatNamesTheOperation) {
  Variable a = leaf(2);
  Variable y = product(a, a);
  y.backward();
  try {
    y.backward();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("product"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("retain_graph"), std::string::npos) << e.what();
  }
  EXPECT_EQ(grad_of(a), 4);
}

TEST(Engine, RetainedGraphRunsAgain) {
  Variable a = leaf(2);
  Variable y = product(a, a);
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(grad_of(a), 8);
}

TEST(Engine, RootGradientIsChecked) {
  Variable a({full({3}, 2)}, true);
  Variable y = product(a, a);
  EXPECT_THROW(y.backward(), Error);
  EXPECT_THROW(y.backward(ones({4})), Error);
  EXPECT_THROW(y.backward(ones({3}, {.dtype = kF64})), Error);
  y.backward(tensor({1.f, 2.f, 3.f}));
  EXPECT_CLOSE(a.grad(), tensor({4.f, 8.f, 12.f}), 0, 0);
}

TEST(Engine, IntegerLeafRefusesGradient) {
  EXPECT_THROW(Variable(zeros({2}, {.dtype = kI64}), true), Error);
}

TEST(Engine, LongChainNeitherOverflowsBackwardNorDestruction) {
  Variable a = leaf(1);
  {
    Variable y = a;
    for (int i = 0; i < 200'000; ++i) y = product(y, leaf(1, false));
    y.backward();
  }
  EXPECT_EQ(grad_of(a), 1);
  Variable y = a;
  for (int i = 0; i < 200'000; ++i) y = product(y, leaf(1, false));
}

TEST(Engine, GradLeavesTheLeavesAlone) {
  Variable a = leaf(3), b = leaf(4), c = leaf(9);
  Variable m = product(a, b);
  Variable y = product(m, m);
  const std::vector<Variable> wanted{a, m, c}, outputs{y};
  std::vector<Tensor> g = grad(outputs, wanted);
  EXPECT_EQ(g[0].item(), 2 * 3 * 16);
  EXPECT_EQ(g[1].item(), 24);
  EXPECT_FALSE(g[2].defined());
  EXPECT_FALSE(a.grad().defined());
  EXPECT_FALSE(b.grad().defined());
}

TEST(Engine, SeveralRoots) {
  Variable a = leaf(3);
  Variable y = product(a, a), z = product(y, a);
  const std::vector<Variable> roots{y, z, y};
  backward(roots);
  EXPECT_EQ(grad_of(a), 6 + 27 + 6);
}

TEST(Engine, GradBufferReceivesTheGradient) {
  Variable a = leaf(3), b = leaf(4);
  Tensor memory = full({10}, -1);
  a.set_grad_buffer(memory.slice(0, 2, 3));
  product(a, b).backward();
  EXPECT_EQ(memory.data<float>()[2], 4);
  EXPECT_TRUE(a.grad().shares_storage_with(memory));
  product(a, b).backward();
  EXPECT_EQ(memory.data<float>()[2], 8);
  a.zero_grad();
  product(a, b).backward();
  EXPECT_EQ(memory.data<float>()[2], 4);
  EXPECT_EQ(memory.data<float>()[1], -1);
}

TEST(Engine, DeadLeafIsSkipped) {
  Variable b = leaf(4), y;
  {
    Variable a = leaf(3);
    y = product(a, b);
  }
  y.backward();
  EXPECT_EQ(grad_of(b), 3);
}

TEST(Engine, InferenceResultsStayOutOfGraphs) {
  Variable a = leaf(2), y;
  {
    InferenceMode guard;
    y = product(a, a);
    EXPECT_FALSE(y.requires_grad());
  }
  EXPECT_THROW(product(y, a), Error);
  EXPECT_NO_THROW(product(y, leaf(1, false)));
  EXPECT_NO_THROW(product(y.detach(), a));
}

TEST(Engine, ThreadsTrainApart) {
  std::vector<float> grads(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Variable a = leaf(static_cast<float>(t));
      for (int i = 0; i < 100; ++i) {
        a.zero_grad();
        product(product(a, a), a).backward();
      }
      grads[t] = grad_of(a);
    });
  for (auto& t : threads) t.join();
  for (int t = 0; t < 8; ++t) EXPECT_EQ(grads[t], 3.f * t * t);
}

TEST(Gradcheck, FindsAWrongGradient) {
  auto cube = [](double factor) {
    return [factor](const std::vector<Variable>& x) {
      Tensor y = empty_like(x[0].data());
      for (int i = 0; i < 3; ++i) {
        const double v = x[0].data().data<double>()[i];
        y.data<double>()[i] = v * v * v;
      }
      return record("cube", y, inputs(x[0]), [&](const Tensor&) {
        return [x = x[0].data(), factor](const Tensor& dy, Gradients& dx) {
          dx.set(0, [&] {
            Tensor d = empty_like(x);
            for (int i = 0; i < 3; ++i) {
              const double v = x.data<double>()[i];
              d.data<double>()[i] = dy.data<double>()[i] * factor * v * v;
            }
            return d;
          });
        };
      });
    };
  };
  const std::vector<Tensor> x{tensor({0.5, -1.25, 2.0})};
  EXPECT_EQ(gradcheck(cube(3), x), "");
  EXPECT_NE(gradcheck(cube(3.001), x), "");
}

}  // namespace
}  // namespace lockstep::testing
