// Optimizer steps against the machine's copy bandwidth. A step is bound by memory: SGD with
// momentum reads parameter, gradient and velocity and writes two of them, 20 bytes per f32 element;
// Adam 28.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "lockstep/optim/adamw.h"
#include "lockstep/optim/sgd.h"

namespace {

using lockstep::Variable;

// Parameters of `total` elements in 24 tensors, gradients set.
std::vector<Variable> parameters(std::int64_t total) {
  std::vector<Variable> params;
  for (int i = 0; i < 24; ++i) {
    params.emplace_back(lockstep::full({total / 24}, 0.5), true);
    params.back().set_grad(lockstep::full({total / 24}, 1e-3));
  }
  return params;
}

void set_bytes(benchmark::State& state, std::int64_t bytes_per_element) {
  state.SetBytesProcessed(state.iterations() * (state.range(0) / 24 * 24) * bytes_per_element);
}

void BM_copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0)) * 4;
  std::vector<char> from(bytes, 1), to(bytes, 2);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  set_bytes(state, 8);
}

void BM_sgd_nesterov(benchmark::State& state) {
  lockstep::optim::SGD optimizer(parameters(state.range(0)),
                                 lockstep::optim::SGDOptions(0.1).momentum(0.9).nesterov(true));
  optimizer.step();  // takes the memory of the state
  for (auto _ : state) optimizer.step();
  set_bytes(state, 20);
}

void BM_adamw(benchmark::State& state) {
  lockstep::optim::AdamW optimizer(parameters(state.range(0)));
  optimizer.step();  // takes the memory of the state
  for (auto _ : state) optimizer.step();
  set_bytes(state, 28);
}

}  // namespace

BENCHMARK(BM_copy)->Arg(1 << 20)->Arg(6 << 20)->Arg(24 << 20)->UseRealTime();
BENCHMARK(BM_sgd_nesterov)->Arg(1 << 20)->Arg(6 << 20)->Arg(24 << 20)->UseRealTime();
BENCHMARK(BM_adamw)->Arg(1 << 20)->Arg(6 << 20)->Arg(24 << 20)->UseRealTime();
