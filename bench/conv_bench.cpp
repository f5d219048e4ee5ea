// The parts of a training step of the recipe's network, batch 64: each convolution, norm, pooling
// and linear layer on its own, and all of them in a row ("step": forward and backward without loss
// and optimizer). Time is per call; items are images.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "lockstep/kernels/batch_norm.h"
#include "lockstep/kernels/batch_norm_pool.h"
#include "lockstep/kernels/cast.h"
#include "lockstep/kernels/conv2d.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/max_pool2d.h"

namespace lockstep {
namespace {

constexpr std::int64_t kBatch = 64;

struct LayerSize {
  std::int64_t in, out, size;  // channels, side of the input image
  bool pooled;
};
constexpr std::array<LayerSize, 4> kLayers = {
    {{1, 64, 28, false}, {64, 128, 26, true}, {128, 256, 12, false}, {256, 512, 10, true}}};

Tensor noise(const Shape& shape, DType dtype, double scale = 1) {
  Tensor t = empty(shape);
  std::uint32_t state = 12345;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    t.data<float>()[i] =
        static_cast<float>((state >> 8) * (2.0 / (1 << 24)) - 1.0) * static_cast<float>(scale);
  }
  return kernels::cast(t, dtype);
}

Tensor images(const Shape& shape, DType dtype) {
  return noise(shape, dtype).contiguous(MemoryFormat::kChannelsLast);
}

// One convolution with what follows it, and all tensors of its step.
struct Layer {
  LayerSize size;
  Tensor x, w, b, gamma, beta;

  Layer(const LayerSize& s, DType dtype)
      : size(s),
        x(images({kBatch, s.in, s.size, s.size}, dtype)),
        w(noise({s.out, s.in, 3, 3}, dtype, 0.05)),
        b(noise({s.out}, dtype)),
        gamma(ones({s.out})),
        beta(zeros({s.out})) {}

  Shape y_shape() const { return {kBatch, size.out, size.size - 2, size.size - 2}; }
};

DType dtype_of(const benchmark::State& state) { return state.range(1) ? kBF16 : kF32; }

void finish(benchmark::State& state, double flops) {
  state.SetItemsProcessed(state.iterations() * kBatch);
  if (flops > 0)
    state.counters["flop/s"] =
        benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

double conv_flops(const LayerSize& s) {
  return 2.0 * kBatch * s.out * (s.size - 2) * (s.size - 2) * s.in * 9;
}

void conv_forward(benchmark::State& state) {
  const Layer l(kLayers[state.range(0)], dtype_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(kernels::conv2d_forward(l.x, l.w, l.b));
  finish(state, conv_flops(l.size));
}

void conv_backward_data(benchmark::State& state) {
  const Layer l(kLayers[state.range(0)], dtype_of(state));
  const Tensor dy = images(l.y_shape(), l.x.dtype());
  for (auto _ : state)
    benchmark::DoNotOptimize(kernels::conv2d_backward_data(dy, l.w, l.x.shape()));
  finish(state, conv_flops(l.size));
}

void conv_backward_weights(benchmark::State& state) {
  const Layer l(kLayers[state.range(0)], dtype_of(state));
  const Tensor dy = images(l.y_shape(), l.x.dtype());
  for (auto _ : state)
    benchmark::DoNotOptimize(kernels::conv2d_backward_weights(dy, l.x, l.w.shape(), true));
  finish(state, conv_flops(l.size));
}

kernels::BatchNormState batch_state(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                    std::int64_t* count) {
  const auto m = kernels::batch_norm_moments(x);
  *count = m.count;
  return {m.mean, kernels::batch_norm_inverse_std(m.var, 1e-5), gamma, beta, true};
}

void norm_relu(benchmark::State& state) {
  const Layer l(kLayers[state.range(0)], dtype_of(state));
  const Tensor x = images(l.y_shape(), l.x.dtype()), dy = images(l.y_shape(), l.x.dtype());
  std::int64_t count = 0;
  for (auto _ : state) {
    const auto s = batch_state(x, l.gamma, l.beta, &count);
    benchmark::DoNotOptimize(kernels::batch_norm_forward(x, s));
    const auto sums = kernels::batch_norm_backward_sums(dy, x, s);
    benchmark::DoNotOptimize(kernels::batch_norm_backward(dy, x, s, sums, count));
  }
  finish(state, 0);
}

void norm_relu_pool(benchmark::State& state) {
  const Layer l(kLayers[state.range(0)], dtype_of(state));
  const Tensor x = images(l.y_shape(), l.x.dtype());
  std::int64_t count = 0;
  for (auto _ : state) {
    const auto s = batch_state(x, l.gamma, l.beta, &count);
    const auto r = kernels::batch_norm_pool_forward(x, s, {});
    const auto sums = kernels::batch_norm_pool_backward_sums(r.y, r.taps, x, s, {});
    benchmark::DoNotOptimize(kernels::batch_norm_pool_backward(r.y, r.taps, x, s, {}, sums, count));
  }
  finish(state, 0);
}

void pool(benchmark::State& state) {
  const Layer l(kLayers[state.range(0)], dtype_of(state));
  const Tensor x = images(l.y_shape(), l.x.dtype());
  for (auto _ : state) {
    const auto r = kernels::max_pool2d_forward(x, {});
    benchmark::DoNotOptimize(kernels::max_pool2d_backward(r.y, r.taps, x.shape(), {}));
  }
  finish(state, 0);
}

void linear(benchmark::State& state) {
  const DType dtype = dtype_of(state);
  const Tensor x = noise({kBatch, 8192}, dtype), w = noise({512, 8192}, dtype),
               b = noise({512}, dtype);
  const Tensor dy = noise({kBatch, 512}, dtype);
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernels::linear_forward(x, w, b));
    benchmark::DoNotOptimize(kernels::linear_backward_input(dy, w));
    benchmark::DoNotOptimize(kernels::linear_backward_weight(dy, x));
    benchmark::DoNotOptimize(kernels::linear_backward_bias(dy));
  }
  finish(state, 6.0 * kBatch * 8192 * 512);
}

void step(benchmark::State& state) {
  const DType dtype = dtype_of(state);
  std::vector<Layer> layers;
  for (const LayerSize& s : kLayers) layers.emplace_back(s, dtype);
  const Tensor w1 = noise({512, 8192}, dtype, 0.01), b1 = noise({512}, dtype);
  const Tensor w2 = noise({10, 512}, dtype, 0.05), b2 = noise({10}, dtype);
  const Tensor gamma = ones({512}), beta = zeros({512}), dlogits = noise({kBatch, 10}, dtype);
  struct Saved {
    Tensor x, z;
    kernels::BatchNormState norm;
    std::int64_t count;
    Tensor taps;
  };
  for (auto _ : state) {
    std::vector<Saved> saved;
    Tensor x = layers[0].x;
    for (const Layer& l : layers) {
      Saved s{x, kernels::conv2d_forward(x, l.w, l.b), {}, 0, {}};
      s.norm = batch_state(s.z, l.gamma, l.beta, &s.count);
      if (l.size.pooled) {
        auto r = kernels::batch_norm_pool_forward(
            s.z, s.norm, {},
            l.size.out == 512 ? MemoryFormat::kContiguous : MemoryFormat::kChannelsLast);
        s.taps = r.taps;
        x = r.y;
      } else {
        x = kernels::batch_norm_forward(s.z, s.norm);
      }
      saved.push_back(std::move(s));
    }
    const Shape last = x.shape();
    const Tensor flat = x.view({kBatch, 8192});
    const Tensor h = kernels::linear_forward(flat, w1, b1);
    std::int64_t count = 0;
    const auto norm = batch_state(h, gamma, beta, &count);
    const Tensor a = kernels::batch_norm_forward(h, norm);
    benchmark::DoNotOptimize(kernels::linear_forward(a, w2, b2));
    benchmark::DoNotOptimize(kernels::linear_backward_weight(dlogits, a));
    benchmark::DoNotOptimize(kernels::linear_backward_bias(dlogits));
    const Tensor da = kernels::linear_backward_input(dlogits, w2);
    const Tensor dh = kernels::batch_norm_backward(
        da, h, norm, kernels::batch_norm_backward_sums(da, h, norm), count);
    benchmark::DoNotOptimize(kernels::linear_backward_weight(dh, flat));
    benchmark::DoNotOptimize(kernels::linear_backward_bias(dh));
    Tensor dy = kernels::linear_backward_input(dh, w1).view(last);
    for (std::size_t i = layers.size(); i-- > 0;) {
      const Saved& s = saved[i];
      if (s.taps.defined()) {
        const auto sums = kernels::batch_norm_pool_backward_sums(dy, s.taps, s.z, s.norm, {});
        dy = kernels::batch_norm_pool_backward(dy, s.taps, s.z, s.norm, {}, sums, s.count);
      } else {
        const auto sums = kernels::batch_norm_backward_sums(dy, s.z, s.norm);
        dy = kernels::batch_norm_backward(dy, s.z, s.norm, sums, s.count);
      }
      benchmark::DoNotOptimize(
          kernels::conv2d_backward_weights(dy, s.x, layers[i].w.shape(), true));
      if (i > 0) dy = kernels::conv2d_backward_data(dy, layers[i].w, s.x.shape());
    }
  }
  finish(state, 0);
}

void per_layer(benchmark::internal::Benchmark* b) {
  b->ArgNames({"layer", "bf16"})
      ->ArgsProduct({{0, 1, 2, 3}, {0, 1}})
      ->Unit(benchmark::kMillisecond);
}
void once(benchmark::internal::Benchmark* b) {
  b->ArgNames({"", "bf16"})->ArgsProduct({{0}, {0, 1}})->Unit(benchmark::kMillisecond);
}

BENCHMARK(conv_forward)->Apply(per_layer);
BENCHMARK(conv_backward_data)->Apply(per_layer);
BENCHMARK(conv_backward_weights)->Apply(per_layer);
BENCHMARK(norm_relu)->Apply(per_layer);
BENCHMARK(norm_relu_pool)
    ->ArgNames({"layer", "bf16"})
    ->ArgsProduct({{1, 3}, {0, 1}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(pool)
    ->ArgNames({"layer", "bf16"})
    ->ArgsProduct({{1, 3}, {0, 1}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(linear)->Apply(once);
BENCHMARK(step)->Apply(once);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
