// Cross-entropy forward reads a row once (rows longer than a warp's registers twice, from cache)
// and keeps its maximum and sum; the losses are added up by one block in one order. Backward reads
// the logits once and writes the gradient.
#include "lockstep/kernels/cross_entropy_cuda.h"

#include "lockstep/core/device_fault.cuh"
#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/row_parts.cuh"

namespace lockstep::kernels::cuda {
namespace {

// What a kernel is told of targets and options.
template <class C>
struct Classes {
  const void* labels;
  DType label_dtype;
  const C* weight;  // null: all 1
  std::uint64_t rows, classes;
  std::int64_t ignore_index;
  C smoothing;
  lockstep::cuda::DeviceFault* fault;
  const char* fault_text;

  // -1 where the row counts for nothing.
  __device__ __forceinline__ std::int64_t label(std::uint64_t row, bool reports) const {
    const auto label =
        load_element<std::int64_t>(labels, static_cast<std::int64_t>(row), label_dtype);
    if (label == ignore_index) return -1;
    if (label >= 0 && static_cast<std::uint64_t>(label) < classes) return label;
    if (reports)
      lockstep::cuda::report_fault(fault, fault_text, label, static_cast<long long>(row),
                                   static_cast<long long>(classes),
                                   static_cast<long long>(classes) - 1, ignore_index);
    return -1;
  }
  __device__ __forceinline__ C weight_of(std::uint64_t c) const {
    return weight != nullptr ? weight[c] : C(1);
  }
};

constexpr const char* kFaultText =
    "cross_entropy: target {} in row {} is not one of the {} classes (0 to {}) and not "
    "ignore_index {}";

// What one thread writes of a row, from its maximum, its sum of exp(x - max) and, with smoothing,
// the sums of w_c (x_c - max) and of w_c.
template <class T, class R, class C>
__device__ __forceinline__ void finish_row(const Classes<C>& classes, std::uint64_t row, const T* x,
                                           C max, C sum, C smooth_sum, C weights, C* stats,
                                           R* losses) {
  stats[2 * row] = max;
  stats[2 * row + 1] = sum;
  C loss = 0;
  const std::int64_t label = classes.label(row, true);
  if (label >= 0) {
    const C log_sum = log_of(sum);
    loss = (C(1) - classes.smoothing) * classes.weight_of(static_cast<std::uint64_t>(label)) *
           (log_sum - (convert_element<C>(x[label]) - max));
    if (classes.smoothing > C(0))
      loss +=
          classes.smoothing / static_cast<C>(classes.classes) * (weights * log_sum - smooth_sum);
  }
  losses[row] = convert_element<R>(loss);
}

template <class T, class R, int kN, int kVectors>
__global__ void __launch_bounds__(RowShare::kThreads)
    cross_entropy_warp_kernel(const T* x, Classes<Compute<T>> classes, Compute<T>* stats, R* losses,
                              unsigned lanes) {
  using C = Compute<T>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  const auto length = static_cast<unsigned>(classes.classes);
  const unsigned lane = threadIdx.x % lanes;
  const std::uint64_t row =
      std::uint64_t{blockIdx.x} * (RowShare::kThreads / lanes) + threadIdx.x / lanes;
  const bool inside = row < classes.rows;  // all come along: lanes exchange values
  x += row * length;
  RowPart<T, kN, kVectors> part;
  part.load(x, inside ? length : 0, lane, lanes, kLowest);
  C max = kLowest;
#pragma unroll
  for (const C value : part.value) max = MaxOf()(max, value);
  max = group_reduce(max, lanes, MaxOf());
  C sum = 0, smooth_sum = 0, weights = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const unsigned c = (lane + lanes * static_cast<unsigned>(v)) * kN + static_cast<unsigned>(i);
      if (!inside || c >= length) continue;
      const C shifted = part.value[v * kN + i] - max;
      sum += exp_of(shifted);
      if (classes.smoothing > C(0)) {
        smooth_sum += classes.weight_of(c) * shifted;
        weights += classes.weight_of(c);
      }
    }
  sum = group_reduce(sum, lanes, SumOf());
  if (classes.smoothing > C(0)) {
    smooth_sum = group_reduce(smooth_sum, lanes, SumOf());
    weights = group_reduce(weights, lanes, SumOf());
  }
  if (inside && lane == 0)
    finish_row(classes, row, x, max, sum, smooth_sum, weights, stats, losses);
}

template <class T, class R, int kN>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads)
    cross_entropy_block_kernel(const T* x, Classes<Compute<T>> classes, Compute<T>* stats,
                               R* losses) {
  using C = Compute<T>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  __shared__ C scratch[32];
  const std::uint64_t row = blockIdx.x;
  x += row * classes.classes;
  C max = kLowest;
  for_row<kN>(x, classes.classes, [&](C value, std::uint64_t) { max = MaxOf()(max, value); });
  max = block_reduce(max, kLowest, scratch, MaxOf());
  C sum = 0, smooth_sum = 0, weights = 0;
  for_row<kN>(x, classes.classes, [&](C value, std::uint64_t c) {
    sum += exp_of(value - max);
    if (classes.smoothing > C(0)) {
      smooth_sum += classes.weight_of(c) * (value - max);
      weights += classes.weight_of(c);
    }
  });
  sum = block_reduce(sum, C(0), scratch, SumOf());
  smooth_sum = block_reduce(smooth_sum, C(0), scratch, SumOf());
  weights = block_reduce(weights, C(0), scratch, SumOf());
  if (threadIdx.x == 0) finish_row(classes, row, x, max, sum, smooth_sum, weights, stats, losses);
}

// One block: loss (a sum or mean), and the total weight of the rows that count. In f64, in one
// order.
template <class T, class C>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads)
    sum_losses_kernel(const C* losses, Classes<C> classes, T* loss, C* total_weight, bool mean) {
  __shared__ double scratch[32];
  double sum = 0, weight = 0;
  for (std::uint64_t row = threadIdx.x; row < classes.rows; row += blockDim.x) {
    if (losses != nullptr) sum += static_cast<double>(losses[row]);
    const std::int64_t label = classes.label(row, false);
    if (label >= 0)
      weight += static_cast<double>(classes.weight_of(static_cast<std::uint64_t>(label)));
  }
  sum = block_reduce(sum, 0.0, scratch, SumOf());
  weight = block_reduce(weight, 0.0, scratch, SumOf());
  if (threadIdx.x != 0) return;
  *total_weight = static_cast<C>(weight);
  if (loss == nullptr) return;
  if (mean) sum = weight == 0 ? 0 : sum / weight;
  *loss = convert_element<T>(sum);
}

// `dloss_step` is 1 where each row has its own gradient, else 0.
template <class T, int kN>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads)
    cross_entropy_backward_kernel(const T* x, T* dx, const T* dloss, unsigned dloss_step,
                                  Classes<Compute<T>> classes, const Compute<T>* stats, bool mean,
                                  const Compute<T>* weights) {
  using C = Compute<T>;
  const std::uint64_t vectors = classes.classes / kN;
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= classes.rows * vectors) return;
  const std::uint64_t row = i / vectors, first = (i - row * vectors) * kN;
  const std::int64_t label = classes.label(row, false);
  C scale = label < 0 ? C(0) : convert_element<C>(dloss[row * dloss_step]);
  if (mean && scale != C(0)) {
    const C total = stats[2 * classes.rows];
    scale = total == C(0) ? C(0) : scale / total;
  }
  AlignedVector<T, kN> out = {};
  if (scale != C(0)) {
    const AlignedVector<T, kN> in = load_vector<kN>(x + i * kN);
    const C max = stats[2 * row], sum = stats[2 * row + 1];
    const C each = classes.smoothing / static_cast<C>(classes.classes);
    const C own = (C(1) - classes.smoothing) * classes.weight_of(static_cast<std::uint64_t>(label));
    const C all = weights != nullptr ? *weights : static_cast<C>(classes.classes);
#pragma unroll
    for (unsigned j = 0; j < kN; ++j) {
      const std::uint64_t c = first + j;
      const C p = exp_of(convert_element<C>(in.value[j]) - max) / sum;
      C d = (own + each * all) * p - each * classes.weight_of(c);
      if (c == static_cast<std::uint64_t>(label)) d -= own;
      out.value[j] = convert_element<T>(scale * d);
    }
  }
  store_vector(dx + i * kN, out);
}

template <class C>
__global__ void __launch_bounds__(lockstep::cuda::kBlockThreads)
    sum_weights_kernel(const C* weight, std::uint64_t n, C* out) {
  __shared__ double scratch[32];
  double sum = 0;
  for (std::uint64_t i = threadIdx.x; i < n; i += blockDim.x) sum += static_cast<double>(weight[i]);
  sum = block_reduce(sum, 0.0, scratch, SumOf());
  if (threadIdx.x == 0) *out = static_cast<C>(sum);
}

template <class C>
Classes<C> classes_of(const DeviceTargets& t, const ClassLossOptions& options) {
  return {t.labels.data(),
          t.labels.dtype(),
          t.weight.defined() ? elements<const C>(t.weight) : nullptr,
          static_cast<std::uint64_t>(t.scores.size(0)),
          static_cast<std::uint64_t>(t.scores.size(1)),
          options.ignore_index,
          static_cast<C>(options.label_smoothing),
          lockstep::cuda::device_fault(),
          kFaultText};
}

template <class T, class R>
void rows_forward(const Tensor& x, const Classes<Compute<T>>& classes, const Tensor& stats,
                  R* losses) {
  using C = Compute<T>;
  const auto stream = current_native_stream(x.device());
  const auto with = [&]<int kN>() {
    const RowShare share(x.size(1), kN, sizeof(C));
    if (share.fits)
      return visit_row_share<kN, C>(share, [&]<int kVectors>() {
        lockstep::cuda::launch("cross_entropy", stream, share.grid(x.size(0)), RowShare::kThreads,
                               0, cross_entropy_warp_kernel<T, R, kN, kVectors>, elements<T>(x),
                               classes, elements<C>(stats), losses, share.lanes);
      });
    lockstep::cuda::launch("cross_entropy", stream, static_cast<unsigned>(x.size(0)),
                           lockstep::cuda::kBlockThreads, 0, cross_entropy_block_kernel<T, R, kN>,
                           elements<T>(x), classes, elements<C>(stats), losses);
  };
  has_vector_rows<T>(x.size(1), x) ? with.template operator()<kVectorElements<T>>()
                                   : with.template operator()<1>();
}

}  // namespace

CrossEntropy cross_entropy_forward(const DeviceTargets& t, const ClassLossOptions& options) {
  const Tensor& x = t.scores;
  const Device device = x.device();
  const DeviceGuard guard(device);
  const std::int64_t rows = x.size(0);
  const DType wide = x.dtype() == kF64 ? kF64 : kF32;
  const bool none = options.reduction == Reduction::kNone;
  CrossEntropy result;
  result.row_stats = empty({rows + 1, 2}, {wide, device});
  result.loss = empty(none ? t.target_shape : Shape{}, {x.dtype(), device});
  const Tensor losses = none ? Tensor() : empty({rows}, {wide, device});
  visit_device_floating(x.dtype(), "cross_entropy", [&]<class T>() {
    using C = Compute<T>;
    const Classes<C> classes = classes_of<C>(t, options);
    if (rows > 0) {
      if (none)
        rows_forward<T, T>(x, classes, result.row_stats, elements<T>(result.loss));
      else
        rows_forward<T, C>(x, classes, result.row_stats, elements<C>(losses));
    }
    lockstep::cuda::launch(
        "cross_entropy", current_native_stream(device), 1, lockstep::cuda::kBlockThreads, 0,
        sum_losses_kernel<T, C>, none ? nullptr : elements<const C>(losses), classes,
        none ? nullptr : elements<T>(result.loss), elements<C>(result.row_stats) + 2 * rows,
        options.reduction == Reduction::kMean);
  });
  return result;
}

Tensor cross_entropy_backward(const Tensor& dloss, const DeviceTargets& t, const Tensor& row_stats,
                              const ClassLossOptions& options) {
  const Tensor& x = t.scores;
  const DeviceGuard guard(x.device());
  const auto stream = current_native_stream(x.device());
  const Tensor dx = empty(x.shape(), {x.dtype(), x.device()});
  if (dx.numel() == 0) return dx;
  visit_device_floating(x.dtype(), "cross_entropy", [&]<class T>() {
    using C = Compute<T>;
    const Tensor weights =
        t.weight.defined() ? empty({}, {t.weight.dtype(), x.device()}) : Tensor();
    if (weights.defined())
      lockstep::cuda::launch("cross_entropy_backward", stream, 1, lockstep::cuda::kBlockThreads, 0,
                             sum_weights_kernel<C>, elements<C>(t.weight),
                             static_cast<std::uint64_t>(t.weight.numel()), elements<C>(weights));
    const auto launch = [&]<int kN>() {
      lockstep::cuda::launch(
          "cross_entropy_backward", stream,
          lockstep::cuda::grid_for(dx.numel() / kN, lockstep::cuda::kBlockThreads),
          lockstep::cuda::kBlockThreads, 0, cross_entropy_backward_kernel<T, kN>, elements<T>(x),
          elements<T>(dx), elements<T>(dloss), options.reduction == Reduction::kNone ? 1u : 0u,
          classes_of<C>(t, options), elements<C>(row_stats), options.reduction == Reduction::kMean,
          weights.defined() ? elements<const C>(weights) : nullptr);
    };
    has_vector_rows<T>(x.size(1), x) ? launch.template operator()<kVectorElements<T>>()
                                     : launch.template operator()<1>();
  });
  return dx;
}

}  // namespace lockstep::kernels::cuda
