// Matrix products C (m,n) = A (m,k) B (k,n) in f32 on one thread, with either operand stored
// transposed. Each row names m, n, k and which are transposed; time is in us per call; FLOP/s count
// 2 per multiply-add (bench/flops.h).
#include <benchmark/benchmark.h>

#include "bench/flops.h"
#include "lockstep/core/threads.h"
#include "lockstep/kernels/matmul.h"

namespace {

using lockstep::Tensor;

// (rows, columns); transposed: as a view of a tensor that holds columns as rows.
Tensor operand(std::int64_t rows, std::int64_t columns, bool transposed) {
  return transposed ? lockstep::full({columns, rows}, 0.5).transpose(0, 1)
                    : lockstep::full({rows, columns}, 0.5);
}

void BM_gemm(benchmark::State& state) {
  lockstep::set_num_threads(1);
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const Tensor a = operand(m, k, state.range(3) != 0), b = operand(k, n, state.range(4) != 0);
  for (auto _ : state) benchmark::DoNotOptimize(lockstep::kernels::matmul_forward(a, b));
  state.counters["FLOP/s"] =
      benchmark::Counter(static_cast<double>(lockstep::bench::gemm_flop(m, n, k)),
                         benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

BENCHMARK(BM_gemm)
    ->ArgNames({"m", "n", "k", "transA", "transB"})
    ->ArgsProduct({{1024}, {1024}, {1024}, {0, 1}, {0, 1}})
    ->Args({64, 512, 8192, 0, 1})  // the first linear layer of the recipe's network
    ->Args({2048, 32, 1024, 0, 0})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_MAIN();
