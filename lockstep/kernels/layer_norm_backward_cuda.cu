// Layer norm backward. Blocks walk over the rows with both rows of dy and x in registers and add up
// the parameters' gradients of their own rows; a second kernel adds up the blocks' sums in order.
// Rows that are too long for registers are read twice, and the parameters' gradients of pieces of
// the rows are added up apart.
#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/layer_norm_cuda.h"
#include "lockstep/kernels/layer_norm_rows.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr std::int64_t kMostBlocks = 512;  // a few on each multiprocessor

// Adds up what the block's groups have of a gradient and writes it as sums[0 … length - 1].
// `shared`: room for a row. All threads must come.
template <int kN, int kVectors, class C>
__device__ __forceinline__ void write_sums(C (&part)[kN * kVectors], C* sums, C* shared,
                                           unsigned length, unsigned lanes) {
  for (unsigned distance = lanes; distance < 32; distance *= 2)
#pragma unroll
    for (C& value : part) value += __shfl_xor_sync(0xffffffffu, value, static_cast<int>(distance));
  const unsigned width = lanes < 32 ? 32 : lanes, groups = blockDim.x / width;
  const unsigned lane = threadIdx.x % lanes, group = threadIdx.x / width;
  const bool speaks = threadIdx.x % width < lanes;
  for (unsigned turn = 0; turn < groups; ++turn) {
    if (turn > 0) __syncthreads();
    if (group != turn || !speaks) continue;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const unsigned at = (lane + lanes * static_cast<unsigned>(v)) * kN;
      if (at >= length) continue;
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        C& to = turn + 1 == groups ? sums[at + i] : shared[at + i];
        to = turn == 0 ? part[v * kN + i] : shared[at + i] + part[v * kN + i];
      }
    }
  }
  __syncthreads();
}

// dx and sums may be null. sums (blocks, 2, length): of dy h and of dy.
template <class T, class W, int kN, int kVectors>
__global__ void __launch_bounds__(kLayerNormThreads, 1)
    layer_norm_backward_kernel(const T* dy, const T* x, const W* weight, const Compute<T>* mean,
                               const Compute<T>* rstd, T* dx, Compute<T>* sums, std::uint64_t rows,
                               unsigned length, unsigned lanes) {
  using C = Compute<T>;
  __shared__ C scratch[32];
  constexpr int kCount = kN * kVectors;
  const unsigned lane = threadIdx.x % lanes, groups = blockDim.x / lanes;
  const C n = static_cast<C>(length);
  C of_weight[kCount], of_bias[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) of_weight[i] = of_bias[i] = 0;
  const std::uint64_t step = std::uint64_t{gridDim.x} * groups;
  for (std::uint64_t first = std::uint64_t{blockIdx.x} * groups; first < rows; first += step) {
    const std::uint64_t row = first + threadIdx.x / lanes;
    const unsigned here = row < rows ? length : 0;
    RowPart<T, kN, kVectors> gradient, normed;
    gradient.load(dy + row * length, here, lane, lanes, C(0));
    const C m = here ? mean[row] : C(0), r = here ? rstd[row] : C(0);
    normed.load(x + row * length, here, lane, lanes, m);
    C sum = 0, sum_normed = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const unsigned at = (lane + lanes * static_cast<unsigned>(v)) * kN;
      if (at >= here) continue;
      C w[kN];
      load_parameter(weight, at, C(1), w);
#pragma unroll
      for (int k = 0; k < kN; ++k) {
        const int i = v * kN + k;
        C &g = gradient.value[i], &h = normed.value[i];
        h = (h - m) * r;
        of_weight[i] += g * h;
        of_bias[i] += g;
        g *= w[k];
        sum += g;
        sum_normed += g * h;
      }
    }
    if (!dx) continue;
    sum = sum_over_row(sum, lanes, scratch) / n;
    sum_normed = sum_over_row(sum_normed, lanes, scratch) / n;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      gradient.value[i] = (gradient.value[i] - sum - normed.value[i] * sum_normed) * r;
    gradient.store(dx + row * length, here, lane, lanes);
  }
  if (!sums) return;
  C* const shared = lockstep::cuda::dynamic_shared_memory<C>();
  C* const to = sums + std::uint64_t{blockIdx.x} * 2 * length;
  write_sums<kN, kVectors>(of_weight, to, shared, length, lanes);
  write_sums<kN, kVectors>(of_bias, to + length, shared, length, lanes);
}

template <class T, class W, int kN>
__global__ void __launch_bounds__(kLayerNormThreads)
    layer_norm_long_backward_kernel(const T* dy, const T* x, const W* weight,
                                    const Compute<T>* mean, const Compute<T>* rstd, T* dx,
                                    std::uint64_t length) {
  using C = Compute<T>;
  __shared__ C scratch[32];
  const std::uint64_t begin = blockIdx.x * length;
  const C m = mean[blockIdx.x], r = rstd[blockIdx.x];
  // Calls f(weighted gradient, normed, element) for each of the thread's elements.
  const auto for_each = [&](auto&& f) {
    for (std::uint64_t at = std::uint64_t{threadIdx.x} * kN; at < length; at += blockDim.x * kN) {
      const AlignedVector<T, kN> g = load_vector<kN>(dy + begin + at);
      const AlignedVector<T, kN> h = load_vector<kN>(x + begin + at);
      C w[kN];
      load_parameter(weight, at, C(1), w);
      f(
          at, [&](int i) { return convert_element<C>(g.value[i]) * w[i]; },
          [&](int i) { return (convert_element<C>(h.value[i]) - m) * r; });
    }
  };
  C sum = 0, sum_normed = 0;
  for_each([&](std::uint64_t, auto&& weighted, auto&& normed) {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      sum += weighted(i);
      sum_normed += weighted(i) * normed(i);
    }
  });
  sum = block_reduce(sum, C(0), scratch, SumOf()) / static_cast<C>(length);
  sum_normed = block_reduce(sum_normed, C(0), scratch, SumOf()) / static_cast<C>(length);
  for_each([&](std::uint64_t at, auto&& weighted, auto&& normed) {
    AlignedVector<T, kN> out;
#pragma unroll
    for (int i = 0; i < kN; ++i)
      out.value[i] = convert_element<T>((weighted(i) - sum - normed(i) * sum_normed) * r);
    store_vector(dx + begin + at, out);
  });
}

// A thread to a column, a block of threads to a piece of the rows. x may be null: of dy alone.
template <class T>
__global__ void __launch_bounds__(kLayerNormThreads)
    layer_norm_columns_kernel(const T* dy, const T* x, const Compute<T>* mean,
                              const Compute<T>* rstd, Compute<T>* sums, std::uint64_t rows,
                              std::uint64_t length, std::uint64_t per_piece) {
  using C = Compute<T>;
  const std::uint64_t column = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= length) return;
  const std::uint64_t begin = blockIdx.y * per_piece, end = min(rows, begin + per_piece);
  C of_weight = 0, of_bias = 0;
#pragma unroll 4
  for (std::uint64_t r = begin; r < end; ++r) {
    const C g = convert_element<C>(dy[r * length + column]);
    if (x) of_weight += g * ((convert_element<C>(x[r * length + column]) - mean[r]) * rstd[r]);
    of_bias += g;
  }
  C* const to = sums + std::uint64_t{blockIdx.y} * 2 * length + column;
  to[0] = of_weight;
  to[length] = of_bias;
}

// The sums (blocks, 2, length) of all blocks, in order; blockIdx.y: of the weight or the bias.
template <class C>
__global__ void __launch_bounds__(256)
    layer_norm_join_kernel(const C* sums, unsigned blocks, std::uint64_t length, void* dweight,
                           DType weight_dtype, void* dbias, DType bias_dtype) {
  constexpr unsigned kLanes = 32, kRows = 8;
  __shared__ C of_row[kRows][kLanes];
  void* const out = blockIdx.y == 0 ? dweight : dbias;
  if (!out) return;
  const unsigned lane = threadIdx.x % kLanes, row = threadIdx.x / kLanes;
  const std::uint64_t column = std::uint64_t{blockIdx.x} * kLanes + lane;
  C sum = 0;
  if (column < length)
    for (unsigned b = row; b < blocks; b += kRows)
      sum += sums[(std::uint64_t{b} * 2 + blockIdx.y) * length + column];
  of_row[row][lane] = sum;
  __syncthreads();
  if (row != 0 || column >= length) return;
  for (unsigned r = 1; r < kRows; ++r) sum += of_row[r][lane];
  store_element<C>(out, static_cast<std::int64_t>(column),
                   blockIdx.y == 0 ? weight_dtype : bias_dtype, sum);
}

struct Backward {
  const Tensor &dy, &x, &mean, &rstd, &dx, &dweight, &dbias;
  Tensor weight;
  std::int64_t rows, length;
  cudaStream_t stream;

  bool wants_sums() const { return dweight.defined() || dbias.defined(); }
  template <class T>
  static T* pointer(const Tensor& t) {
    return t.defined() ? elements<T>(t) : nullptr;
  }
  template <class C>
  Tensor room_for_sums(unsigned blocks) const {
    if (!wants_sums()) return {};
    return empty({blocks, 2, length}, {sizeof(C) == 8 ? kF64 : kF32, dy.device()});
  }
  template <class C>
  void join(const Tensor& sums) const {
    if (!sums.defined()) return;
    lockstep::cuda::launch("layer_norm_join", stream, dim3(lockstep::cuda::grid_for(length, 32), 2),
                           256, 0, layer_norm_join_kernel<C>, elements<C>(sums),
                           static_cast<unsigned>(sums.size(0)), static_cast<std::uint64_t>(length),
                           pointer<void>(dweight), dweight.defined() ? dweight.dtype() : kF32,
                           pointer<void>(dbias), dbias.defined() ? dbias.dtype() : kF32);
  }

  template <class T, class W, int kN>
  void run_short(const RowShare& share) const {
    using C = Compute<T>;
    const unsigned threads = layer_norm_threads(share);
    const unsigned grid = lockstep::cuda::grid_for(rows, threads / share.lanes, kMostBlocks);
    const Tensor sums = room_for_sums<C>(grid);
    const std::size_t shared =
        share.lanes > 32 || !wants_sums() ? 0 : static_cast<std::size_t>(length) * sizeof(C);
    visit_row_share<kN, C>(share, [&]<int kVectors>() {
      lockstep::cuda::launch("layer_norm_backward", stream, grid, threads, shared,
                             layer_norm_backward_kernel<T, W, kN, kVectors>, elements<T>(dy),
                             elements<T>(x), pointer<W>(weight), elements<C>(mean),
                             elements<C>(rstd), pointer<T>(dx), pointer<C>(sums),
                             static_cast<std::uint64_t>(rows), static_cast<unsigned>(length),
                             share.lanes);
    });
    join<C>(sums);
  }

  template <class T, class W, int kN>
  void run_long() const {
    using C = Compute<T>;
    if (dx.defined())
      lockstep::cuda::launch("layer_norm_backward", stream, static_cast<unsigned>(rows),
                             kLayerNormThreads, 0, layer_norm_long_backward_kernel<T, W, kN>,
                             elements<T>(dy), elements<T>(x), pointer<W>(weight), elements<C>(mean),
                             elements<C>(rstd), elements<T>(dx),
                             static_cast<std::uint64_t>(length));
    if (!wants_sums()) return;
    const std::int64_t per_piece = std::max<std::int64_t>((rows + 63) / 64, 16);
    const auto pieces = static_cast<unsigned>((rows + per_piece - 1) / per_piece);
    const Tensor sums = room_for_sums<C>(pieces);
    lockstep::cuda::launch("layer_norm_columns", stream,
                           dim3(lockstep::cuda::grid_for(length, kLayerNormThreads), pieces),
                           kLayerNormThreads, 0, layer_norm_columns_kernel<T>, elements<T>(dy),
                           pointer<T>(x), pointer<C>(mean), pointer<C>(rstd), elements<C>(sums),
                           static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(length),
                           static_cast<std::uint64_t>(per_piece));
    join<C>(sums);
  }
};

}  // namespace

void layer_norm_rows_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                              const Tensor& mean, const Tensor& rstd, const Tensor& dx,
                              const Tensor& dweight, const Tensor& dbias) {
  const DeviceGuard guard(dy.device());
  const std::int64_t rows =
      x.defined() ? mean.numel() : dy.numel() / std::max<std::int64_t>(dbias.numel(), 1);
  const std::int64_t length = dy.numel() / rows;
  const DType compute = dy.dtype() == kF64 ? kF64 : kF32;
  const LayerNormParameters p(weight, {}, dy.dtype(), compute);
  const Backward job = {dy,
                        x,
                        mean,
                        rstd,
                        dx,
                        dweight,
                        dbias,
                        p.weight,
                        rows,
                        length,
                        current_native_stream(dy.device())};
  visit_layer_norm(dy.dtype(), p.wide, length, {&dy, &x, &dx, &p.weight},
                   [&]<class T, class W, int kN>() {
                     const RowShare share = layer_norm_share(length, kN, sizeof(Compute<T>));
                     if (x.defined() && share.fits)
                       job.template run_short<T, W, kN>(share);
                     else
                       job.template run_long<T, W, kN>();
                   });
}

}  // namespace lockstep::kernels::cuda
