// Short rows lie in the registers of up to 32 lanes, several rows to a warp where they are very
// short; long ones in a block's shared memory; the longest are read again, from cache.
#include "lockstep/kernels/softmax_cuda.h"

#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/row_parts.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T, int kN, int kVectors, bool kLog>
__global__ void __launch_bounds__(RowShare::kThreads)
    softmax_warp_kernel(const T* x, T* y, std::uint64_t rows, unsigned length, unsigned lanes) {
  using C = Compute<T>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  const unsigned lane = threadIdx.x % lanes;
  const std::uint64_t row =
      std::uint64_t{blockIdx.x} * (RowShare::kThreads / lanes) + threadIdx.x / lanes;
  // Groups without a row come along: a warp's lanes exchange values together.
  const unsigned here = row < rows ? length : 0;
  RowPart<T, kN, kVectors> part;
  part.load(x + row * length, here, lane, lanes, kLowest);
  C max = kLowest;
#pragma unroll
  for (const C value : part.value) max = MaxOf()(max, value);
  max = group_reduce(max, lanes, MaxOf());
  C sum = 0;
#pragma unroll
  for (C& value : part.value) {
    const C shifted = value - max;
    const C e = exp_of(shifted);
    sum += e;
    value = kLog ? shifted : e;
  }
  sum = group_reduce(sum, lanes, SumOf());
  const C term = kLog ? log_of(sum) : C(1) / sum;
#pragma unroll
  for (C& value : part.value) value = kLog ? value - term : value * term;
  part.store(y + row * length, here, lane, lanes);
}

template <class T, int kN, int kVectors, bool kLog>
__global__ void __launch_bounds__(RowShare::kThreads)
    softmax_warp_backward_kernel(const T* dy, const T* y, T* dx, std::uint64_t rows,
                                 unsigned length, unsigned lanes) {
  using C = Compute<T>;
  const unsigned lane = threadIdx.x % lanes;
  const std::uint64_t row =
      std::uint64_t{blockIdx.x} * (RowShare::kThreads / lanes) + threadIdx.x / lanes;
  const unsigned here = row < rows ? length : 0;
  RowPart<T, kN, kVectors> gradient, result;
  gradient.load(dy + row * length, here, lane, lanes, C(0));
  result.load(y + row * length, here, lane, lanes, C(0));
  C sum = 0;
#pragma unroll
  for (int i = 0; i < gradient.kCount; ++i)
    sum += kLog ? gradient.value[i] : gradient.value[i] * result.value[i];
  sum = group_reduce(sum, lanes, SumOf());
#pragma unroll
  for (int i = 0; i < gradient.kCount; ++i)
    gradient.value[i] = kLog ? gradient.value[i] - exp_of(result.value[i]) * sum
                             : result.value[i] * (gradient.value[i] - sum);
  gradient.store(dx + row * length, here, lane, lanes);
}

// The block's copy of a row in shared memory, or the row itself where that has no room. Each thread
// reads back only what it has written.
template <int kN, class T>
__device__ __forceinline__ const T* keep_row(const T* row, T* kept, std::uint64_t length) {
  if (kept == nullptr) return row;
  for (std::uint64_t at = std::uint64_t{threadIdx.x} * kN; at < length; at += blockDim.x * kN)
    store_vector(kept + at, load_vector<kN>(row + at));
  return kept;
}

template <class T, int kN, bool kLog>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads)
    softmax_block_kernel(const T* x, T* y, std::uint64_t length, bool keeps) {
  using C = Compute<T>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  __shared__ C scratch[32];
  y += blockIdx.x * length;
  const T* const row =
      keep_row<kN>(x + blockIdx.x * length,
                   keeps ? lockstep::cuda::dynamic_shared_memory<T>() : nullptr, length);
  C max = kLowest;
  for_row<kN>(row, length, [&](C value, std::uint64_t) { max = MaxOf()(max, value); });
  max = block_reduce(max, kLowest, scratch, MaxOf());
  C sum = 0;
  for_row<kN>(row, length, [&](C value, std::uint64_t) { sum += exp_of(value - max); });
  sum = block_reduce(sum, C(0), scratch, SumOf());
  const C term = kLog ? log_of(sum) : C(1) / sum;
  for (std::uint64_t at = std::uint64_t{threadIdx.x} * kN; at < length; at += blockDim.x * kN) {
    AlignedVector<T, kN> part = load_vector<kN>(row + at);
#pragma unroll
    for (T& value : part.value) {
      const C shifted = convert_element<C>(value) - max;
      value = convert_element<T>(kLog ? shifted - term : exp_of(shifted) * term);
    }
    store_vector(y + at, part);
  }
}

template <class T, int kN, bool kLog>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads)
    softmax_block_backward_kernel(const T* dy, const T* y, T* dx, std::uint64_t length,
                                  bool keeps) {
  using C = Compute<T>;
  __shared__ C scratch[32];
  T* const kept = keeps ? lockstep::cuda::dynamic_shared_memory<T>() : nullptr;
  const T* const gradients = keep_row<kN>(dy + blockIdx.x * length, kept, length);
  const T* const results =
      keep_row<kN>(y + blockIdx.x * length, keeps ? kept + length : nullptr, length);
  dx += blockIdx.x * length;
  C sum = 0;
  for (std::uint64_t at = std::uint64_t{threadIdx.x} * kN; at < length; at += blockDim.x * kN) {
    const AlignedVector<T, kN> gradient = load_vector<kN>(gradients + at);
    const AlignedVector<T, kN> result = load_vector<kN>(results + at);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const C g = convert_element<C>(gradient.value[i]);
      sum += kLog ? g : g * convert_element<C>(result.value[i]);
    }
  }
  sum = block_reduce(sum, C(0), scratch, SumOf());
  for (std::uint64_t at = std::uint64_t{threadIdx.x} * kN; at < length; at += blockDim.x * kN) {
    AlignedVector<T, kN> gradient = load_vector<kN>(gradients + at);
    const AlignedVector<T, kN> result = load_vector<kN>(results + at);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const C g = convert_element<C>(gradient.value[i]), r = convert_element<C>(result.value[i]);
      gradient.value[i] = convert_element<T>(kLog ? g - exp_of(r) * sum : r * (g - sum));
    }
    store_vector(dx + at, gradient);
  }
}

struct Rows {
  std::int64_t rows, length;
  cudaStream_t stream;

  explicit Rows(const Tensor& x)
      : rows(x.size(0)), length(x.size(1)), stream(current_native_stream(x.device())) {}

  // Bytes of shared memory for `count` rows of T, 0 where there is no room.
  template <class T>
  std::size_t room(std::int64_t count) const {
    constexpr std::int64_t kMost = 47 << 10;  // without asking CUDA, beside the static part
    const std::int64_t bytes = count * length * static_cast<std::int64_t>(sizeof(T));
    return bytes <= kMost ? static_cast<std::size_t>(bytes) : 0;
  }
};

template <class T, int kN, bool kLog>
void forward(const Tensor& x, const Tensor& y) {
  const Rows rows(x);
  const RowShare share(rows.length, kN, sizeof(Compute<T>));
  if (share.fits)
    return visit_row_share<kN, Compute<T>>(share, [&]<int kVectors>() {
      lockstep::cuda::launch("softmax", rows.stream, share.grid(rows.rows), RowShare::kThreads, 0,
                             softmax_warp_kernel<T, kN, kVectors, kLog>, elements<T>(x),
                             elements<T>(y), static_cast<std::uint64_t>(rows.rows),
                             static_cast<unsigned>(rows.length), share.lanes);
    });
  const std::size_t room = rows.room<T>(1);
  lockstep::cuda::launch("softmax", rows.stream, static_cast<unsigned>(rows.rows),
                         lockstep::cuda::kBlockThreads, room, softmax_block_kernel<T, kN, kLog>,
                         elements<T>(x), elements<T>(y), static_cast<std::uint64_t>(rows.length),
                         room > 0);
}

template <class T, int kN, bool kLog>
void backward(const Tensor& dy, const Tensor& y, const Tensor& dx) {
  const Rows rows(y);
  const RowShare share(rows.length, kN, sizeof(Compute<T>));
  if (share.fits)
    return visit_row_share<kN, Compute<T>>(share, [&]<int kVectors>() {
      lockstep::cuda::launch("softmax_backward", rows.stream, share.grid(rows.rows),
                             RowShare::kThreads, 0,
                             softmax_warp_backward_kernel<T, kN, kVectors, kLog>, elements<T>(dy),
                             elements<T>(y), elements<T>(dx), static_cast<std::uint64_t>(rows.rows),
                             static_cast<unsigned>(rows.length), share.lanes);
    });
  const std::size_t room = rows.room<T>(2);
  lockstep::cuda::launch("softmax_backward", rows.stream, static_cast<unsigned>(rows.rows),
                         lockstep::cuda::kBlockThreads, room,
                         softmax_block_backward_kernel<T, kN, kLog>, elements<T>(dy),
                         elements<T>(y), elements<T>(dx), static_cast<std::uint64_t>(rows.length),
                         room > 0);
}

}  // namespace

void softmax_rows(const Tensor& x, const Tensor& y, bool log) {
  const DeviceGuard guard(x.device());
  visit_device_floating(x.dtype(), "softmax", [&]<class T>() {
    constexpr int kN = kVectorElements<T>;
    if (has_vector_rows<T>(x.size(1), x, y))
      log ? forward<T, kN, true>(x, y) : forward<T, kN, false>(x, y);
    else
      log ? forward<T, 1, true>(x, y) : forward<T, 1, false>(x, y);
  });
}

void softmax_rows_backward(const Tensor& dy, const Tensor& y, const Tensor& dx, bool log) {
  const DeviceGuard guard(y.device());
  visit_device_floating(y.dtype(), "softmax backward", [&]<class T>() {
    constexpr int kN = kVectorElements<T>;
    if (has_vector_rows<T>(y.size(1), y, dy, dx))
      log ? backward<T, kN, true>(dy, y, dx) : backward<T, kN, false>(dy, y, dx);
    else
      log ? backward<T, 1, true>(dy, y, dx) : backward<T, 1, false>(dy, y, dx);
  });
}

}  // namespace lockstep::kernels::cuda
