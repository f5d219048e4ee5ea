// Threads of one program that train models of their own do not notice each other.
#include <gtest/gtest.h>

#include <thread>

#include "lockstep/autograd/ops/cross_entropy.h"
#include "lockstep/core/random.h"
#include "lockstep/core/threads.h"
#include "lockstep/nn/nn.h"
#include "lockstep/optim/sgd.h"

namespace lockstep::testing {
namespace {

// Losses of 100 steps of a small net with every kind of hidden state: draws, caches, statistics.
std::vector<double> train(std::uint64_t seed) {
  set_num_threads(1);
  manual_seed(seed);
  nn::Sequential model{nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1)),
                       nn::BatchNorm2d(4),
                       nn::ReLU(),
                       nn::MaxPool2d(2),
                       nn::Flatten(),
                       nn::Dropout(0.25),
                       nn::Linear(4 * 3 * 3, 5)};
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.05).momentum(0.9));
  Generator& generator = default_generator();
  std::vector<double> losses;
  for (int step = 0; step < 100; ++step) {
    const Tensor x = randn({8, 1, 6, 6}, generator), target = randint(0, 5, {8}, generator);
    const Variable loss = cross_entropy(model->forward(x), target);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item());
  }
  set_num_threads(0);
  return losses;
}

// ml-explore/mlx#2086
TEST(ThreadsWithOwnModels, TrainAsIfTheyWereAlone) {
  constexpr int kThreads = 8;
  std::vector<std::vector<double>> together(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { together[i] = train(static_cast<std::uint64_t>(i)); });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(together[i], train(static_cast<std::uint64_t>(i)));
  EXPECT_NE(together[0], together[1]);
}

}  // namespace
}  // namespace lockstep::testing
