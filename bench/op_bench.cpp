// Cost of element-wise operations: the overhead of one call on one element, with and without a
// graph, and the bandwidth of long contiguous ones beside that of a plain copy in the same run.
//
// Times are per operation. bytes_per_second counts each input read once and the output written once
// (1 GB/s = 10^9 bytes/s). `of_copy` is the best call's rate divided by that of the best memcpy on
// buffers of the same total size, measured right before: 1 is as fast as memory (or that cache)
// allows.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "lockstep/autograd/grad_mode.h"
#include "lockstep/autograd/ops/activation.h"
#include "lockstep/autograd/ops/arithmetic.h"
#include "lockstep/autograd/ops/cast.h"
#include "lockstep/autograd/ops/elementary.h"
#include "lockstep/autograd/ops/sum.h"
#include "lockstep/core/threads.h"

namespace lockstep {
namespace {

void add_one_element(benchmark::State& state) {
  const Variable a(ones({1})), b(ones({1}));
  for (auto _ : state) benchmark::DoNotOptimize(add(a, b));
}
BENCHMARK(add_one_element);

void add_one_element_with_gradient(benchmark::State& state) {
  const Variable a(ones({1}), true), b(ones({1}), true);
  for (auto _ : state) benchmark::DoNotOptimize(add(a, b));
}
BENCHMARK(add_one_element_with_gradient);

void add_and_backward_one_element(benchmark::State& state) {
  Variable a(ones({1}), true), b(ones({1}), true);
  for (auto _ : state) {
    add(a, b).backward();
    a.zero_grad();
    b.zero_grad();
  }
}
BENCHMARK(add_and_backward_one_element);

// Bytes per second of memcpy moving `bytes` in all (read and written), best of several.
double copy_rate(std::size_t bytes) {
  std::vector<char> from(bytes / 2, 1), to(bytes / 2);
  double best = 0;
  const int repeats = static_cast<int>(std::max<std::size_t>((std::size_t{1} << 28) / bytes, 5));
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(2 * from.size()) / took.count());
  }
  return best;
}

template <class F>
void bandwidth(benchmark::State& state, std::size_t bytes, F&& op) {
  set_num_threads(1);
  NoGradGuard no_grad;
  const double copy = copy_rate(bytes);
  for (int i = 0; i < 3; ++i) benchmark::DoNotOptimize(op());
  double best = 1e30;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(op());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  state.counters["of_copy"] = static_cast<double>(bytes) / best / copy;
}

Variable operand(std::int64_t n, DType dtype) { return to(Variable(full({n}, 0.5)), dtype); }

template <class F>
void unary(benchmark::State& state, DType dtype, F op) {
  const std::int64_t n = state.range(0);
  const Variable x = operand(n, dtype);
  bandwidth(state, 2 * x.data().nbytes(), [&] { return op(x); });
}

void add_long(benchmark::State& state, DType dtype) {
  const Variable a = operand(state.range(0), dtype), b = operand(state.range(0), dtype);
  bandwidth(state, 3 * a.data().nbytes(), [&] { return add(a, b); });
}

void sum_long(benchmark::State& state, DType dtype) {
  const Variable x = operand(state.range(0), dtype);
  bandwidth(state, x.data().nbytes(), [&] { return sum(x); });
}

void cast_long(benchmark::State& state, DType from, DType dtype) {
  const Variable x = operand(state.range(0), from);
  bandwidth(state, x.data().nbytes() + x.data().nbytes() / x.data().itemsize() * dtype_size(dtype),
            [&] { return to(x, dtype); });
}

constexpr std::int64_t kInCache = 1 << 14, kInMemory = 1 << 24;

BENCHMARK_CAPTURE(add_long, f32, kF32)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(add_long, bf16, kBF16)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(sum_long, f32, kF32)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(sum_long, bf16, kBF16)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(cast_long, f32_to_bf16, kF32, kBF16)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(cast_long, f16_to_f32, kF16, kF32)->Arg(kInCache)->Arg(kInMemory);

void relu_long(benchmark::State& state, DType dtype) {
  unary(state, dtype, [](const Variable& x) { return relu(x); });
}
void exp_long(benchmark::State& state, DType dtype) {
  unary(state, dtype, [](const Variable& x) { return exp(x); });
}
void log_long(benchmark::State& state, DType dtype) {
  unary(state, dtype, [](const Variable& x) { return log(x); });
}
void tanh_long(benchmark::State& state, DType dtype) {
  unary(state, dtype, [](const Variable& x) { return tanh(x); });
}
void gelu_long(benchmark::State& state, DType dtype) {
  unary(state, dtype, [](const Variable& x) { return gelu(x); });
}

BENCHMARK_CAPTURE(relu_long, f32, kF32)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(relu_long, bf16, kBF16)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(exp_long, f32, kF32)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(exp_long, bf16, kBF16)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(log_long, f32, kF32)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(tanh_long, f32, kF32)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(gelu_long, f32, kF32)->Arg(kInCache)->Arg(kInMemory);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
