// Batch norm backward, with or without max pooling behind it: sums over the rows in pieces, added
// up in order, then dx in a second pass.
#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/batch_norm_channel.cuh"
#include "lockstep/kernels/channel_grid.cuh"

namespace lockstep::kernels::cuda {
namespace {

// The gradient of a row of the matrix (rows, C), for kN channels.
template <class T>
struct PlainGradient {
  const T* dy;
  std::uint64_t channels;

  template <int kN>
  __device__ __forceinline__ AlignedVector<T, kN> load(std::uint64_t row,
                                                       std::uint64_t channel) const {
    return load_vector<kN>(dy + row * channels + channel);
  }
};

// That of the window's maximum is dy's, the others' is 0.
template <class T>
struct PooledGradient {
  const T* dy;  // (N,C,P,Q) of any strides
  const std::uint8_t* taps;
  std::uint64_t channels, h, w, p, q;
  std::uint32_t kernel[2];
  std::int64_t stride[4];  // of dy

  template <int kN>
  __device__ __forceinline__ AlignedVector<T, kN> load(std::uint64_t row,
                                                       std::uint64_t channel) const {
    const std::uint64_t line = row / w, x = row - line * w, image = line / h, y = line - image * h;
    const std::uint64_t at_p = y / kernel[0], at_q = x / kernel[1];
    AlignedVector<T, kN> out = {};
    if (at_p >= p || at_q >= q) return out;
    const auto tap =
        static_cast<std::uint8_t>((y - at_p * kernel[0]) * kernel[1] + (x - at_q * kernel[1]));
    const auto of_taps =
        load_vector<kN>(taps + ((image * p + at_p) * q + at_q) * channels + channel);
    const T* const from = dy + static_cast<std::int64_t>(image) * stride[0] +
                          static_cast<std::int64_t>(at_p) * stride[2] +
                          static_cast<std::int64_t>(at_q) * stride[3];
#pragma unroll
    for (int i = 0; i < kN; ++i)
      if (of_taps.value[i] == tap)
        out.value[i] =
            from[static_cast<std::int64_t>(channel + static_cast<unsigned>(i)) * stride[1]];
    return out;
  }
};

// parts (2, pieces, C): sums of g and of g (x - mean).
template <int kN, class T, class Gradient>
__global__ void __launch_bounds__(ChannelGrid::kThreads)
    backward_sums_kernel(Gradient gradient, const T* x, ChannelState<Compute<T>> state,
                         Compute<T>* parts, ChannelGrid grid) {
  using C = Compute<T>;
  __shared__ C scratch[kN][ChannelGrid::kThreads];
  const ChannelThread at(grid, kN);
  const bool inside = at.channel < grid.channels;
  C sum[kN] = {}, product[kN] = {};
  if (inside) {
    const ChannelValues<C, kN> channel(state, at.channel);
    for (std::uint64_t row = at.row; row < at.end; row += at.step) {
      const auto in = load_vector<kN>(x + row * grid.channels + at.channel);
      const auto of_y = gradient.template load<kN>(row, at.channel);
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        const C value = convert_element<C>(in.value[i]);
        C g = convert_element<C>(of_y.value[i]);
        if (state.relu && channel.normalized(value, i) <= C(0)) g = 0;
        sum[i] += g;
        product[i] += g * (value - channel.mean[i]);
      }
    }
  }
  add_over_rows(sum, grid.lanes, scratch);
  add_over_rows(product, grid.lanes, scratch);
  if (threadIdx.x >= grid.lanes || !inside) return;
  const std::uint64_t pieces = gridDim.y;
#pragma unroll
  for (unsigned i = 0; i < kN; ++i) {
    parts[blockIdx.y * grid.channels + at.channel + i] = sum[i];
    parts[(pieces + blockIdx.y) * grid.channels + at.channel + i] = product[i];
  }
}

template <class C>
__global__ void add_sums_kernel(const C* parts, C* dy, C* dy_xmu, ChannelGrid grid) {
  const std::uint64_t channel = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (channel >= grid.channels) return;
  C sum = 0, product = 0;
  for (std::uint64_t p = 0; p < grid.pieces; ++p) {
    sum += parts[p * grid.channels + channel];
    product += parts[(grid.pieces + p) * grid.channels + channel];
  }
  dy[channel] = sum;
  dy_xmu[channel] = product;
}

// `count` 0: the statistics are given, and sums null.
template <int kN, class T, class Gradient>
__global__ void __launch_bounds__(ChannelGrid::kThreads)
    backward_kernel(Gradient gradient, const T* x, ChannelState<Compute<T>> state,
                    const Compute<T>* sum_dy, const Compute<T>* sum_dy_xmu, Compute<T> count, T* dx,
                    ChannelGrid grid) {
  using C = Compute<T>;
  const ChannelThread at(grid, kN);
  if (at.channel >= grid.channels) return;
  const ChannelValues<C, kN> channel(state, at.channel);
  C along[kN] = {}, constant[kN] = {};
  if (count > C(0))
#pragma unroll
    for (unsigned i = 0; i < kN; ++i) {
      const C inverse = state.inverse_std != nullptr ? state.inverse_std[at.channel + i] : C(1);
      along[i] = -channel.scale[i] * inverse * inverse * sum_dy_xmu[at.channel + i] / count;
      constant[i] = -channel.scale[i] * sum_dy[at.channel + i] / count;
    }
  for (std::uint64_t row = at.row; row < at.end; row += at.step) {
    const std::uint64_t here = row * grid.channels + at.channel;
    const auto in = load_vector<kN>(x + here);
    auto out = gradient.template load<kN>(row, at.channel);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const C value = convert_element<C>(in.value[i]);
      C g = convert_element<C>(out.value[i]);
      if (state.relu && channel.normalized(value, i) <= C(0)) g = 0;
      out.value[i] = convert_element<T>(g * channel.scale[i] +
                                        (value - channel.mean[i]) * along[i] + constant[i]);
    }
    store_vector(dx + here, out);
  }
}

template <class T>
PlainGradient<T> plain(const BatchNormGradient& g, const ChannelRows& x) {
  return {elements<T>(g.dy), static_cast<std::uint64_t>(x.c)};
}

template <class T>
PooledGradient<T> pooled(const BatchNormGradient& g, const ChannelRows& x) {
  const auto u64 = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  PooledGradient<T> out{
      elements<T>(g.dy),    elements<std::uint8_t>(g.taps), u64(x.c), u64(g.x[2]), u64(g.x[3]),
      u64(g.dy.shape()[2]), u64(g.dy.shape()[3]),           {},       {}};
  for (int i = 0; i < 2; ++i) out.kernel[i] = static_cast<std::uint32_t>(g.kernel[i]);
  for (int i = 0; i < 4; ++i) out.stride[i] = g.dy.strides()[i];
  return out;
}

// f.operator()<kN, T>(gradient).
template <class F>
void visit(const BatchNormGradient& g, const ChannelRows& x, const Tensor& out, F&& f) {
  visit_device_floating(x.x.dtype(), "batch_norm", [&]<class T>() {
    constexpr int kN = kVectorElements<T>;
    if (!g.taps.defined())
      has_vector_rows<T>(x.c, x.x, out, g.dy) ? f.template operator()<kN, T>(plain<T>(g, x))
                                              : f.template operator()<1, T>(plain<T>(g, x));
    else
      has_vector_rows<T>(x.c, x.x, out, g.taps) ? f.template operator()<kN, T>(pooled<T>(g, x))
                                                : f.template operator()<1, T>(pooled<T>(g, x));
  });
}

}  // namespace

void batch_norm_backward_sums(const BatchNormGradient& gradient, const ChannelRows& x,
                              const BatchNormState& state, const BatchNormSums& sums) {
  const DeviceGuard guard(x.x.device());
  const auto stream = current_native_stream(x.x.device());
  visit(gradient, x, x.x, [&]<int kN, class T, class Gradient>(const Gradient& g) {
    using C = Compute<T>;
    const ChannelGrid grid(x.rows, x.c, kN, 256);
    const Tensor parts = empty({2, grid.pieces, x.c}, {sums.dy.dtype(), x.x.device()});
    lockstep::cuda::launch("batch_norm_backward_sums", stream, grid.grid(kN), ChannelGrid::kThreads,
                           0, backward_sums_kernel<kN, T, Gradient>, g, elements<T>(x.x),
                           ChannelState<C>(state), elements<C>(parts), grid);
    lockstep::cuda::launch("batch_norm_backward_sums", stream,
                           lockstep::cuda::grid_for(x.c, lockstep::cuda::kBlockThreads),
                           lockstep::cuda::kBlockThreads, 0, add_sums_kernel<C>, elements<C>(parts),
                           elements<C>(sums.dy), elements<C>(sums.dy_xmu), grid);
  });
}

void batch_norm_backward(const BatchNormGradient& gradient, const ChannelRows& x,
                         const BatchNormState& state, const BatchNormSums& sums, std::int64_t count,
                         const Tensor& dx) {
  const DeviceGuard guard(x.x.device());
  visit(gradient, x, dx, [&]<int kN, class T, class Gradient>(const Gradient& g) {
    using C = Compute<T>;
    const ChannelGrid grid(x.rows, x.c, kN, 1 << 14);
    lockstep::cuda::launch("batch_norm_backward", current_native_stream(x.x.device()),
                           grid.grid(kN), ChannelGrid::kThreads, 0,
                           backward_kernel<kN, T, Gradient>, g, elements<T>(x.x),
                           ChannelState<C>(state), count > 0 ? elements<C>(sums.dy) : nullptr,
                           count > 0 ? elements<C>(sums.dy_xmu) : nullptr, static_cast<C>(count),
                           elements<T>(dx), grid);
  });
}

}  // namespace lockstep::kernels::cuda
