// Max pooling, also behind batch norm and ReLU: a thread has kN channels of one pixel. Backward
// gathers: each pixel of x asks the windows it is in whether it was their maximum.
#include "lockstep/kernels/max_pool2d_cuda.h"

#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/batch_norm_channel.cuh"
#include "lockstep/kernels/channel_grid.cuh"

namespace lockstep::kernels::cuda {
namespace {

struct PoolShape {
  std::uint64_t n, c, h, w, p, q;
  std::int32_t kernel[2] = {}, stride[2] = {}, padding[2] = {}, dilation[2] = {};
  std::int64_t y_stride[4] = {};  // of y or dy: N, C, P, Q
};

// A pixel and its first channel, of (N, rows, columns, C) in vectors of kN channels.
struct Pixel {
  std::uint64_t image, row, column, channel;

  __device__ __forceinline__ Pixel(std::uint64_t i, std::uint64_t vectors, std::uint64_t rows,
                                   std::uint64_t columns, unsigned kN) {
    const std::uint64_t pixel = i / vectors, line = pixel / columns;
    channel = (i - pixel * vectors) * kN;
    column = pixel - line * columns;
    image = line / rows;
    row = line - image * rows;
  }
};

// What is compared: x itself, or what batch norm and ReLU make of it.
template <class C, int kN>
struct AsItIs {
  struct Argument {
    explicit Argument(const BatchNormState&) {}
  };
  __device__ __forceinline__ AsItIs(const Argument&, std::uint64_t) {}
  __device__ __forceinline__ C operator()(C x, int) const { return x; }
};
template <class C, int kN>
struct Normalized {
  using Argument = ChannelState<C>;
  ChannelValues<C, kN> channel;
  __device__ __forceinline__ Normalized(const Argument& state, std::uint64_t first)
      : channel(state, first) {}
  __device__ __forceinline__ C operator()(C x, int i) const {
    return cut_off(channel.normalized(x, i), true);
  }
};

template <int kN, class T, class Map>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads, 1)
    max_pool_kernel(const T* x, typename Map::Argument argument, T* y, std::uint8_t* taps,
                    PoolShape s) {
  using C = Compute<T>;
  const std::uint64_t vectors = s.c / kN;
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= s.n * s.p * s.q * vectors) return;
  const Pixel at(i, vectors, s.p, s.q, kN);
  const Map map(argument, at.channel);
  const T* const image = x + at.image * s.h * s.w * s.c + at.channel;
  const std::int64_t top = static_cast<std::int64_t>(at.row) * s.stride[0] - s.padding[0];
  const std::int64_t left = static_cast<std::int64_t>(at.column) * s.stride[1] - s.padding[1];
  C best[kN] = {};
  AlignedVector<std::uint8_t, kN> tap = {};
  bool first = true;
  for (std::int32_t r = 0; r < s.kernel[0]; ++r) {
    const auto line = static_cast<std::uint64_t>(top + std::int64_t{r} * s.dilation[0]);
    if (line >= s.h) continue;
    for (std::int32_t k = 0; k < s.kernel[1]; ++k) {
      const auto column = static_cast<std::uint64_t>(left + std::int64_t{k} * s.dilation[1]);
      if (column >= s.w) continue;
      const auto in = load_vector<kN>(image + (line * s.w + column) * s.c);
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        const C value = map(convert_element<C>(in.value[j]), j);
        // The first, a greater one, or the first NaN.
        if (first || (!(value <= best[j]) && best[j] == best[j])) {
          best[j] = value;
          tap.value[j] = static_cast<std::uint8_t>(r * s.kernel[1] + k);
        }
      }
      first = false;
    }
  }
  store_vector(taps + i * kN, tap);
  T* const out = y + static_cast<std::int64_t>(at.image) * s.y_stride[0] +
                 static_cast<std::int64_t>(at.channel) * s.y_stride[1] +
                 static_cast<std::int64_t>(at.row) * s.y_stride[2] +
                 static_cast<std::int64_t>(at.column) * s.y_stride[3];
  if (s.y_stride[1] == 1) {
    AlignedVector<T, kN> result;
#pragma unroll
    for (int j = 0; j < kN; ++j) result.value[j] = convert_element<T>(best[j]);
    store_vector(out, result);
  } else {
#pragma unroll
    for (int j = 0; j < kN; ++j) out[j * s.y_stride[1]] = convert_element<T>(best[j]);
  }
}

template <int kN, class T>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads)
    max_pool_backward_kernel(const T* dy, const std::uint8_t* taps, T* dx, PoolShape s) {
  using C = Compute<T>;
  const std::uint64_t vectors = s.c / kN;
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= s.n * s.h * s.w * vectors) return;
  const Pixel at(i, vectors, s.h, s.w, kN);
  C sum[kN] = {};
  for (std::int32_t r = 0; r < s.kernel[0]; ++r) {
    // The window of which this is row r, if there is one.
    const std::int64_t above =
        static_cast<std::int64_t>(at.row) + s.padding[0] - std::int64_t{r} * s.dilation[0];
    if (above < 0) continue;
    const std::uint64_t p = static_cast<std::uint64_t>(above) / static_cast<unsigned>(s.stride[0]);
    if (p * static_cast<unsigned>(s.stride[0]) != static_cast<std::uint64_t>(above) || p >= s.p)
      continue;
    for (std::int32_t k = 0; k < s.kernel[1]; ++k) {
      const std::int64_t before =
          static_cast<std::int64_t>(at.column) + s.padding[1] - std::int64_t{k} * s.dilation[1];
      if (before < 0) continue;
      const std::uint64_t q =
          static_cast<std::uint64_t>(before) / static_cast<unsigned>(s.stride[1]);
      if (q * static_cast<unsigned>(s.stride[1]) != static_cast<std::uint64_t>(before) || q >= s.q)
        continue;
      const auto tap = load_vector<kN>(taps + ((at.image * s.p + p) * s.q + q) * s.c + at.channel);
      const T* const from = dy + static_cast<std::int64_t>(at.image) * s.y_stride[0] +
                            static_cast<std::int64_t>(at.channel) * s.y_stride[1] +
                            static_cast<std::int64_t>(p) * s.y_stride[2] +
                            static_cast<std::int64_t>(q) * s.y_stride[3];
      const auto here = static_cast<std::uint8_t>(r * s.kernel[1] + k);
#pragma unroll
      for (int j = 0; j < kN; ++j)
        if (tap.value[j] == here) sum[j] += convert_element<C>(from[j * s.y_stride[1]]);
    }
  }
  AlignedVector<T, kN> out;
#pragma unroll
  for (int j = 0; j < kN; ++j) out.value[j] = convert_element<T>(sum[j]);
  store_vector(dx + i * kN, out);
}

// `x` gives the images' shape, `y` the windows' and the strides.
PoolShape shape_of(const Tensor& x, const Tensor& y, const Pool2dOptions& o) {
  const auto u64 = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  PoolShape s{u64(x.size(0)), u64(x.size(1)), u64(x.size(2)),
              u64(x.size(3)), u64(y.size(2)), u64(y.size(3))};
  for (int i = 0; i < 2; ++i) {
    s.kernel[i] = static_cast<std::int32_t>(o.kernel[i]);
    s.stride[i] = static_cast<std::int32_t>(o.stride[i]);
    s.padding[i] = static_cast<std::int32_t>(o.padding[i]);
    s.dilation[i] = static_cast<std::int32_t>(o.dilation[i]);
  }
  for (int i = 0; i < 4; ++i) s.y_stride[i] = y.strides()[i];
  if (x.size(1) == 1) s.y_stride[1] = 1;  // of a single channel it means nothing
  return s;
}

unsigned blocks_for(std::int64_t elements, int kN) {
  return lockstep::cuda::grid_for(elements / kN, lockstep::cuda::kBlockThreads);
}

// Whether y can be written in vectors too, if its channels lie side by side.
template <class T>
bool has_vectors(const Tensor& x, const Tensor& y, const Tensor& taps) {
  const bool plain = y.size(1) == 1 || y.strides()[1] != 1;
  return has_vector_rows<T>(x.size(1), x, taps) &&
         (plain ||
          (has_vector_rows<T>(x.size(1), y) && y.strides()[3] % kVectorElements<T> == 0 &&
           y.strides()[2] % kVectorElements<T> == 0 && y.strides()[0] % kVectorElements<T> == 0));
}

template <template <class, int> class Map>
void forward(const char* name, const Tensor& x, const Pool2dOptions& options, const Tensor& y,
             const Tensor& taps, const BatchNormState& state) {
  const DeviceGuard guard(x.device());
  const PoolShape s = shape_of(x, y, options);
  visit_device_floating(x.dtype(), name, [&]<class T>() {
    const auto launch = [&]<int kN>() {
      lockstep::cuda::launch(name, current_native_stream(x.device()), blocks_for(y.numel(), kN),
                             lockstep::cuda::kBlockThreads, 0,
                             max_pool_kernel<kN, T, Map<Compute<T>, kN>>, elements<T>(x),
                             typename Map<Compute<T>, kN>::Argument(state), elements<T>(y),
                             elements<std::uint8_t>(taps), s);
    };
    has_vectors<T>(x, y, taps) ? launch.template operator()<kVectorElements<T>>()
                               : launch.template operator()<1>();
  });
}

}  // namespace

void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y,
                        const Tensor& taps) {
  forward<AsItIs>("max_pool2d", x, options, y, taps, BatchNormState());
}

void batch_norm_pool_forward(const Tensor& x, const BatchNormState& state,
                             const Pool2dOptions& options, const Tensor& y, const Tensor& taps) {
  forward<Normalized>("batch_norm_pool", x, options, y, taps, state);
}

void max_pool2d_backward(const Tensor& dy, const Tensor& taps, const Pool2dOptions& options,
                         const Tensor& dx) {
  const DeviceGuard guard(dx.device());
  const PoolShape s = shape_of(dx, dy, options);
  visit_device_floating(dx.dtype(), "max_pool2d", [&]<class T>() {
    const auto launch = [&]<int kN>() {
      lockstep::cuda::launch("max_pool2d_backward", current_native_stream(dx.device()),
                             blocks_for(dx.numel(), kN), lockstep::cuda::kBlockThreads, 0,
                             max_pool_backward_kernel<kN, T>, elements<T>(dy),
                             elements<std::uint8_t>(taps), elements<T>(dx), s);
    };
    has_vector_rows<T>(dx.size(1), dx, taps) ? launch.template operator()<kVectorElements<T>>()
                                             : launch.template operator()<1>();
  });
}

}  // namespace lockstep::kernels::cuda
