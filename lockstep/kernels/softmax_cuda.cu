// A warp per row where 32 lanes hold it in registers, else a block per row. Each row is read once
// by the warp and, by the block, once per pass (the later ones from cache).
#include "lockstep/kernels/softmax_cuda.h"

#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/block_reduce.cuh"
#include "lockstep/kernels/device_element.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kWarpsPerBlock = 4;
constexpr std::int64_t kLongestOfWarp = 1024;

// Lane l holds the elements l, l + 32, …: `kPerLane` of them.
template <class T, int kPerLane, bool kLog>
__global__ void softmax_warp_kernel(const T* x, T* y, std::uint64_t rows, unsigned length) {
  using C = Compute<T>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t row = std::uint64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / 32;
  if (row >= rows) return;  // the whole warp
  x += row * length;
  y += row * length;
  C value[kPerLane];
  C max = kLowest;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const unsigned i = lane + 32u * static_cast<unsigned>(k);
    value[k] = i < length ? convert_element<C>(x[i]) : kLowest;
    max = MaxOf()(max, value[k]);
  }
  max = warp_reduce(max, MaxOf());
  C sum = 0;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const unsigned i = lane + 32u * static_cast<unsigned>(k);
    const C shifted = value[k] - max;
    const C e = i < length ? exp_of(shifted) : C(0);
    sum += e;
    value[k] = kLog ? shifted : e;
  }
  sum = warp_reduce(sum, SumOf());
  const C term = kLog ? log_of(sum) : C(1) / sum;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const unsigned i = lane + 32u * static_cast<unsigned>(k);
    if (i < length) y[i] = convert_element<T>(kLog ? value[k] - term : value[k] * term);
  }
}

template <class T, int kPerLane, bool kLog>
__global__ void softmax_warp_backward_kernel(const T* dy, const T* y, T* dx, std::uint64_t rows,
                                             unsigned length) {
  using C = Compute<T>;
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t row = std::uint64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / 32;
  if (row >= rows) return;  // the whole warp
  dy += row * length;
  y += row * length;
  dx += row * length;
  C gradient[kPerLane], result[kPerLane];
  C sum = 0;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const unsigned i = lane + 32u * static_cast<unsigned>(k);
    gradient[k] = i < length ? convert_element<C>(dy[i]) : C(0);
    result[k] = i < length ? convert_element<C>(y[i]) : C(0);
    sum += kLog ? gradient[k] : gradient[k] * result[k];
  }
  sum = warp_reduce(sum, SumOf());
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const unsigned i = lane + 32u * static_cast<unsigned>(k);
    const C d = kLog ? gradient[k] - exp_of(result[k]) * sum : result[k] * (gradient[k] - sum);
    if (i < length) dx[i] = convert_element<T>(d);
  }
}

// One block per row of any length. `scratch` is the block's.
template <class T, bool kLog>
__global__ void softmax_block_kernel(const T* x, T* y, std::uint64_t length) {
  using C = Compute<T>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  __shared__ C scratch[32];
  x += blockIdx.x * length;
  y += blockIdx.x * length;
  C max = kLowest;
  for (std::uint64_t i = threadIdx.x; i < length; i += blockDim.x)
    max = MaxOf()(max, convert_element<C>(x[i]));
  max = block_reduce(max, kLowest, scratch, MaxOf());
  C sum = 0;
  for (std::uint64_t i = threadIdx.x; i < length; i += blockDim.x)
    sum += exp_of(convert_element<C>(x[i]) - max);
  sum = block_reduce(sum, C(0), scratch, SumOf());
  const C term = kLog ? log_of(sum) : C(1) / sum;
  for (std::uint64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const C shifted = convert_element<C>(x[i]) - max;
    y[i] = convert_element<T>(kLog ? shifted - term : exp_of(shifted) * term);
  }
}

template <class T, bool kLog>
__global__ void softmax_block_backward_kernel(const T* dy, const T* y, T* dx,
                                              std::uint64_t length) {
  using C = Compute<T>;
  __shared__ C scratch[32];
  dy += blockIdx.x * length;
  y += blockIdx.x * length;
  dx += blockIdx.x * length;
  C sum = 0;
  for (std::uint64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const C gradient = convert_element<C>(dy[i]);
    sum += kLog ? gradient : gradient * convert_element<C>(y[i]);
  }
  sum = block_reduce(sum, C(0), scratch, SumOf());
  for (std::uint64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const C gradient = convert_element<C>(dy[i]), result = convert_element<C>(y[i]);
    dx[i] = convert_element<T>(kLog ? gradient - exp_of(result) * sum : result * (gradient - sum));
  }
}

struct RowGrid {
  std::int64_t rows, length;
  cudaStream_t stream;

  dim3 warp_grid() const { return lockstep::cuda::grid_for(rows, kWarpsPerBlock); }
  dim3 warp_block() const { return 32 * kWarpsPerBlock; }
};

RowGrid grid_of(const Tensor& x) {
  return {x.size(0), x.size(1), current_native_stream(x.device())};
}

// Calls f.template operator()<kPerLane>() with the least that holds the row.
template <class F>
void visit_per_lane(std::int64_t length, F&& f) {
  if (length <= 32) return f.template operator()<1>();
  if (length <= 64) return f.template operator()<2>();
  if (length <= 128) return f.template operator()<4>();
  if (length <= 256) return f.template operator()<8>();
  if (length <= 512) return f.template operator()<16>();
  f.template operator()<32>();
}

template <class T, bool kLog>
void forward(const Tensor& x, const Tensor& y) {
  const RowGrid g = grid_of(x);
  if (g.length <= kLongestOfWarp) {
    visit_per_lane(g.length, [&]<int kPerLane>() {
      lockstep::cuda::launch("softmax", g.stream, g.warp_grid(), g.warp_block(), 0,
                             softmax_warp_kernel<T, kPerLane, kLog>, elements<T>(x), elements<T>(y),
                             static_cast<std::uint64_t>(g.rows), static_cast<unsigned>(g.length));
    });
    return;
  }
  lockstep::cuda::launch("softmax", g.stream, static_cast<unsigned>(g.rows),
                         lockstep::cuda::kBlockThreads, 0, softmax_block_kernel<T, kLog>,
                         elements<T>(x), elements<T>(y), static_cast<std::uint64_t>(g.length));
}

template <class T, bool kLog>
void backward(const Tensor& dy, const Tensor& y, const Tensor& dx) {
  const RowGrid g = grid_of(y);
  if (g.length <= kLongestOfWarp) {
    visit_per_lane(g.length, [&]<int kPerLane>() {
      lockstep::cuda::launch("softmax_backward", g.stream, g.warp_grid(), g.warp_block(), 0,
                             softmax_warp_backward_kernel<T, kPerLane, kLog>, elements<T>(dy),
                             elements<T>(y), elements<T>(dx), static_cast<std::uint64_t>(g.rows),
                             static_cast<unsigned>(g.length));
    });
    return;
  }
  lockstep::cuda::launch("softmax_backward", g.stream, static_cast<unsigned>(g.rows),
                         lockstep::cuda::kBlockThreads, 0, softmax_block_backward_kernel<T, kLog>,
                         elements<T>(dy), elements<T>(y), elements<T>(dx),
                         static_cast<std::uint64_t>(g.length));
}

}  // namespace

void softmax_rows(const Tensor& x, const Tensor& y, bool log) {
  const DeviceGuard guard(x.device());
  visit_device_floating(x.dtype(), "softmax",
                        [&]<class T>() { log ? forward<T, true>(x, y) : forward<T, false>(x, y); });
}

void softmax_rows_backward(const Tensor& dy, const Tensor& y, const Tensor& dx, bool log) {
  const DeviceGuard guard(y.device());
  visit_device_floating(y.dtype(), "softmax backward", [&]<class T>() {
    log ? backward<T, true>(dy, y, dx) : backward<T, false>(dy, y, dx);
  });
}

}  // namespace lockstep::kernels::cuda
