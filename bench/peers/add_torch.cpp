// What one addition of one element costs in libtorch, for comparison with bench/op_bench.cpp: one
// JSON line, nanoseconds per call, median of several lots. bench/peers/run compiles it against the
// PyTorch that it is given.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

template <class Call>
double median_ns(Call&& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLots = 30, kCalls = 5000;
  std::vector<double> lots;
  for (int lot = 0; lot < kLots; ++lot) {
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    lots.push_back(took.count() / kCalls);
  }
  std::nth_element(lots.begin(), lots.begin() + kLots / 2, lots.end());
  return lots[kLots / 2];
}

}  // namespace

int main() {
  torch::set_num_threads(1);
  const torch::Tensor a = torch::ones({1}), b = torch::ones({1});
  const double plain = median_ns([&] { torch::add(a, b); });
  torch::Tensor p = torch::ones({1}, torch::requires_grad());
  torch::Tensor q = torch::ones({1}, torch::requires_grad());
  const double with_gradient = median_ns([&] { torch::add(p, q); });
  const double with_backward = median_ns([&] {
    torch::add(p, q).backward();
    p.mutable_grad().reset();
    q.mutable_grad().reset();
  });
  std::printf("{\"add_ns\": %.1f, \"add_with_gradient_ns\": %.1f, \"add_and_backward_ns\": %.1f}\n",
              plain, with_gradient, with_backward);
}
