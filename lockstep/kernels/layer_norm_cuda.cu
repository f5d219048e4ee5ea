// Layer norm forward. A row lies in the registers of some lanes or of a block; one that is too long
// for them in shared memory, or is read again from cache.
#include "lockstep/kernels/layer_norm_cuda.h"

#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/layer_norm_rows.cuh"
#include "lockstep/kernels/scalar_math.h"

namespace lockstep::kernels::cuda {
namespace {

template <class T, class W, int kN, int kVectors>
__global__ void __launch_bounds__(kLayerNormThreads, 1)
    layer_norm_kernel(const T* x, const W* weight, const W* bias, T* y, Compute<T>* mean,
                      Compute<T>* rstd, std::uint64_t rows, unsigned length, unsigned lanes,
                      Compute<T> eps) {
  using C = Compute<T>;
  __shared__ C scratch[32];
  const unsigned lane = threadIdx.x % lanes;
  const std::uint64_t row = std::uint64_t{blockIdx.x} * (blockDim.x / lanes) + threadIdx.x / lanes;
  // Groups without a row come along: a warp's lanes exchange values together.
  const unsigned here = row < rows ? length : 0;
  const C n = static_cast<C>(length);
  RowPart<T, kN, kVectors> part;
  part.load(x + row * length, here, lane, lanes, C(0));
  C sum = 0;
#pragma unroll
  for (const C value : part.value) sum += value;
  const C m = sum_over_row(sum, lanes, scratch) / n;
  C squares = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if ((lane + lanes * static_cast<unsigned>(v)) * kN < here)
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        const C d = part.value[v * kN + i] - m;
        squares += d * d;
      }
  const C r = C(1) / sqrt_of(sum_over_row(squares, lanes, scratch) / n + eps);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const unsigned at = (lane + lanes * static_cast<unsigned>(v)) * kN;
    if (at >= here) continue;
    C w[kN], b[kN];
    load_parameter(weight, at, C(1), w);
    load_parameter(bias, at, C(0), b);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      C& value = part.value[v * kN + i];
      value = (value - m) * r * w[i] + b[i];
    }
  }
  part.store(y + row * length, here, lane, lanes);
  if (lane != 0 || row >= rows) return;
  mean[row] = m;
  rstd[row] = r;
}

template <class T, class W, int kN>
__global__ void __launch_bounds__(kLayerNormThreads)
    layer_norm_long_kernel(const T* x, const W* weight, const W* bias, T* y, Compute<T>* mean,
                           Compute<T>* rstd, std::uint64_t length, bool keeps, Compute<T> eps) {
  using C = Compute<T>;
  __shared__ C scratch[32];
  const T* row = x + blockIdx.x * length;
  y += blockIdx.x * length;
  const std::uint64_t first = std::uint64_t{threadIdx.x} * kN, step = blockDim.x * kN;
  // Each thread reads back only what it has written.
  if (keeps) {
    T* const kept = lockstep::cuda::dynamic_shared_memory<T>();
    for (std::uint64_t at = first; at < length; at += step)
      store_vector(kept + at, load_vector<kN>(row + at));
    row = kept;
  }
  C sum = 0;
  for_row<kN>(row, length, [&](C value, std::uint64_t) { sum += value; });
  const C m = block_reduce(sum, C(0), scratch, SumOf()) / static_cast<C>(length);
  C squares = 0;
  for_row<kN>(row, length, [&](C value, std::uint64_t) { squares += (value - m) * (value - m); });
  squares = block_reduce(squares, C(0), scratch, SumOf());
  const C r = C(1) / sqrt_of(squares / static_cast<C>(length) + eps);
  for (std::uint64_t at = first; at < length; at += step) {
    AlignedVector<T, kN> part = load_vector<kN>(row + at);
    C w[kN], b[kN];
    load_parameter(weight, at, C(1), w);
    load_parameter(bias, at, C(0), b);
#pragma unroll
    for (int i = 0; i < kN; ++i)
      part.value[i] = convert_element<T>((convert_element<C>(part.value[i]) - m) * r * w[i] + b[i]);
    store_vector(y + at, part);
  }
  if (threadIdx.x != 0) return;
  mean[blockIdx.x] = m;
  rstd[blockIdx.x] = r;
}

}  // namespace

void layer_norm_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                     const Tensor& y, const Tensor& mean, const Tensor& rstd) {
  const DeviceGuard guard(x.device());
  const auto stream = current_native_stream(x.device());
  const std::int64_t rows = mean.numel(), length = x.numel() / rows;
  const LayerNormParameters p(weight, bias, x.dtype(), mean.dtype());
  visit_layer_norm(
      x.dtype(), p.wide, length, {&x, &y, &p.weight, &p.bias}, [&]<class T, class W, int kN>() {
        using C = Compute<T>;
        const W *w = p.pointer<W>(p.weight), *b = p.pointer<W>(p.bias);
        const RowShare share = layer_norm_share(length, kN, sizeof(C));
        if (!share.fits) {
          const std::size_t bytes = static_cast<std::size_t>(length) * sizeof(T);
          const bool keeps = bytes <= 47 << 10;  // without asking CUDA, beside the static part
          return lockstep::cuda::launch("layer_norm", stream, static_cast<unsigned>(rows),
                                        kLayerNormThreads, keeps ? bytes : 0,
                                        layer_norm_long_kernel<T, W, kN>, elements<T>(x), w, b,
                                        elements<T>(y), elements<C>(mean), elements<C>(rstd),
                                        static_cast<std::uint64_t>(length), keeps, eps);
        }
        const unsigned threads = layer_norm_threads(share);
        visit_row_share<kN, C>(share, [&]<int kVectors>() {
          lockstep::cuda::launch(
              "layer_norm", stream, lockstep::cuda::grid_for(rows, threads / share.lanes), threads,
              0, layer_norm_kernel<T, W, kN, kVectors>, elements<T>(x), w, b, elements<T>(y),
              elements<C>(mean), elements<C>(rstd), static_cast<std::uint64_t>(rows),
              static_cast<unsigned>(length), share.lanes, eps);
        });
      });
}

}  // namespace lockstep::kernels::cuda
