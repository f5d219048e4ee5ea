// Batch norm forward: statistics in one pass over x (Welford per thread, merged in one order), the
// normalisation in a second.
#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/batch_norm_channel.cuh"
#include "lockstep/kernels/channel_grid.cuh"

namespace lockstep::kernels::cuda {
namespace {

// Mean and sum of squared deviations of `count` values; merged by Chan et al. 1979.
template <class C>
struct Moments {
  C count = 0, mean = 0, m2 = 0;

  __device__ __forceinline__ void merge(C other_count, C other_mean, C other_m2) {
    const C both = count + other_count;
    if (both == C(0)) return;
    const C delta = other_mean - mean, share = other_count / both;
    mean += delta * share;
    m2 += other_m2 + delta * delta * count * share;
    count = both;
  }
};

// parts (2, pieces, C): means and sums of squared deviations.
template <int kN, class T>
__global__ void __launch_bounds__(ChannelGrid::kThreads)
    moments_kernel(const T* x, Compute<T>* parts, ChannelGrid grid) {
  using C = Compute<T>;
  __shared__ C of_mean[kN][ChannelGrid::kThreads], of_m2[kN][ChannelGrid::kThreads];
  __shared__ C of_count[ChannelGrid::kThreads];
  const ChannelThread at(grid, kN);
  const bool inside = at.channel < grid.channels;
  C count = 0, mean[kN] = {}, m2[kN] = {};
  if (inside)
    for (std::uint64_t row = at.row; row < at.end; row += at.step) {
      const AlignedVector<T, kN> in = load_vector<kN>(x + row * grid.channels + at.channel);
      count += 1;
      const C share = C(1) / count;
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        const C value = convert_element<C>(in.value[i]), delta = value - mean[i];
        mean[i] += delta * share;
        m2[i] += delta * (value - mean[i]);
      }
    }
  of_count[threadIdx.x] = count;
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    of_mean[i][threadIdx.x] = mean[i];
    of_m2[i][threadIdx.x] = m2[i];
  }
  for (unsigned half = ChannelGrid::kThreads / 2; half >= grid.lanes; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const unsigned other = threadIdx.x + half;
    const C other_count = of_count[other];
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      Moments<C> m{count, mean[i], m2[i]};
      m.merge(other_count, of_mean[i][other], of_m2[i][other]);
      of_mean[i][threadIdx.x] = mean[i] = m.mean;
      of_m2[i][threadIdx.x] = m2[i] = m.m2;
    }
    of_count[threadIdx.x] = count = count + other_count;
  }
  if (threadIdx.x >= grid.lanes || !inside) return;
  const std::uint64_t pieces = gridDim.y;
#pragma unroll
  for (unsigned i = 0; i < kN; ++i) {
    parts[blockIdx.y * grid.channels + at.channel + i] = mean[i];
    parts[(pieces + blockIdx.y) * grid.channels + at.channel + i] = m2[i];
  }
}

template <class C>
__global__ void merge_moments_kernel(const C* parts, C* mean, C* var, ChannelGrid grid) {
  const std::uint64_t channel = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (channel >= grid.channels) return;
  Moments<C> all;
  for (std::uint64_t p = 0; p < grid.pieces; ++p) {
    const std::uint64_t rows = min(grid.rows - p * grid.rows_per_piece, grid.rows_per_piece);
    all.merge(static_cast<C>(rows), parts[p * grid.channels + channel],
              parts[(grid.pieces + p) * grid.channels + channel]);
  }
  mean[channel] = all.mean;
  var[channel] = all.m2 / static_cast<C>(grid.rows);
}

template <int kN, class T>
__global__ void __launch_bounds__(ChannelGrid::kThreads)
    normalize_kernel(const T* x, T* y, ChannelState<Compute<T>> state, ChannelGrid grid) {
  using C = Compute<T>;
  const ChannelThread at(grid, kN);
  if (at.channel >= grid.channels) return;
  const ChannelValues<C, kN> channel(state, at.channel);
  for (std::uint64_t row = at.row; row < at.end; row += at.step) {
    AlignedVector<T, kN> part = load_vector<kN>(x + row * grid.channels + at.channel);
#pragma unroll
    for (int i = 0; i < kN; ++i)
      part.value[i] = convert_element<T>(
          cut_off(channel.normalized(convert_element<C>(part.value[i]), i), state.relu));
    store_vector(y + row * grid.channels + at.channel, part);
  }
}

template <class C>
__global__ void inverse_std_kernel(const C* var, C* out, std::uint64_t n, double eps) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<C>(1.0 / sqrt(static_cast<double>(var[i]) + eps));
}

template <class T, class C>
__global__ void update_running_kernel(T* running, const C* value, std::uint64_t n, double scale,
                                      double factor) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double old = convert_element<double>(running[i]);
  running[i] =
      convert_element<T>((1 - factor) * old + factor * (static_cast<double>(value[i]) * scale));
}

// f.operator()<kN, T>() with vectors where all begin at 16 bytes.
template <class F, class... Tensors>
void visit_channels(DType dtype, std::int64_t c, F&& f, const Tensors&... tensors) {
  visit_device_floating(dtype, "batch_norm", [&]<class T>() {
    if (has_vector_rows<T>(c, tensors...))
      f.template operator()<kVectorElements<T>, T>();
    else
      f.template operator()<1, T>();
  });
}

unsigned blocks_for(std::int64_t n) {
  return lockstep::cuda::grid_for(n, lockstep::cuda::kBlockThreads);
}

}  // namespace

void batch_norm_moments(const ChannelRows& x, const Tensor& mean, const Tensor& var) {
  const DeviceGuard guard(mean.device());
  const auto stream = current_native_stream(mean.device());
  visit_channels(
      x.x.dtype(), x.c,
      [&]<int kN, class T>() {
        using C = Compute<T>;
        const ChannelGrid grid(x.rows, x.c, kN, 256);
        const Tensor parts = empty({2, grid.pieces, x.c}, {mean.dtype(), mean.device()});
        lockstep::cuda::launch("batch_norm_moments", stream, grid.grid(kN), ChannelGrid::kThreads,
                               0, moments_kernel<kN, T>, elements<T>(x.x), elements<C>(parts),
                               grid);
        lockstep::cuda::launch("batch_norm_moments", stream, blocks_for(x.c),
                               lockstep::cuda::kBlockThreads, 0, merge_moments_kernel<C>,
                               elements<C>(parts), elements<C>(mean), elements<C>(var), grid);
      },
      x.x);
}

void batch_norm_inverse_std(const Tensor& var, double eps, const Tensor& out) {
  if (var.numel() == 0) return;
  const DeviceGuard guard(var.device());
  const auto launch = [&]<class C>() {
    lockstep::cuda::launch("batch_norm_inverse_std", current_native_stream(var.device()),
                           blocks_for(var.numel()), lockstep::cuda::kBlockThreads, 0,
                           inverse_std_kernel<C>, elements<C>(var), elements<C>(out),
                           static_cast<std::uint64_t>(var.numel()), eps);
  };
  var.dtype() == kF64 ? launch.operator()<double>() : launch.operator()<float>();
}

void batch_norm_update_running(const Tensor& running, const Tensor& value, double scale,
                               double factor) {
  if (value.numel() == 0) return;
  const DeviceGuard guard(running.device());
  visit_device_floating(running.dtype(), "batch_norm", [&]<class T>() {
    const auto launch = [&]<class C>() {
      lockstep::cuda::launch("batch_norm_update_running", current_native_stream(running.device()),
                             blocks_for(value.numel()), lockstep::cuda::kBlockThreads, 0,
                             update_running_kernel<T, C>, elements<T>(running), elements<C>(value),
                             static_cast<std::uint64_t>(value.numel()), scale, factor);
    };
    value.dtype() == kF64 ? launch.template operator()<double>()
                          : launch.template operator()<float>();
  });
}

void batch_norm_forward(const ChannelRows& x, const BatchNormState& state, const Tensor& y) {
  const DeviceGuard guard(y.device());
  visit_channels(
      x.x.dtype(), x.c,
      [&]<int kN, class T>() {
        const ChannelGrid grid(x.rows, x.c, kN, 1 << 14);
        lockstep::cuda::launch("batch_norm", current_native_stream(y.device()), grid.grid(kN),
                               ChannelGrid::kThreads, 0, normalize_kernel<kN, T>, elements<T>(x.x),
                               elements<T>(y), ChannelState<Compute<T>>(state), grid);
      },
      x.x, y);
}

}  // namespace lockstep::kernels::cuda
