#include "lockstep/kernels/cast_cuda.h"

#include "lockstep/kernels/pointwise_cuda.cuh"
#include "lockstep/kernels/promote.h"

namespace lockstep::kernels::cuda {
namespace {

struct Identity {
  template <class T>
  LOCKSTEP_POINTWISE T operator()(T x) const {
    return x;
  }
};

// 16 bytes of the wider type per thread.
template <class From, class To>
__global__ void convert_packed_kernel(To* dst, const From* src, std::uint64_t n) {
  constexpr int kN = 16 / static_cast<int>(sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  const std::uint64_t vectors = n / kN;
  const std::uint64_t first = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (first < vectors) {
    const AlignedVector<From, kN> in = load_vector<kN>(src + first * kN);
    AlignedVector<To, kN> out;
#pragma unroll
    for (int i = 0; i < kN; ++i) out.value[i] = convert_element<To>(in.value[i]);
    store_vector(dst + first * kN, out);
  }
  const std::uint64_t i = vectors * kN + first;
  if (i < n) dst[i] = convert_element<To>(src[i]);
}

template <class From, class To>
void convert_packed(const Tensor& dst, const Tensor& src) {
  const std::int64_t n = dst.numel();
  constexpr std::int64_t kN = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  lockstep::cuda::launch("cast", current_native_stream(dst.device()),
                         lockstep::cuda::grid_for(n, lockstep::cuda::kBlockThreads * kN),
                         lockstep::cuda::kBlockThreads, 0, convert_packed_kernel<From, To>,
                         elements<To>(dst), elements<From>(src), static_cast<std::uint64_t>(n));
}

bool is_packed(const Tensor& dst, const Tensor& src) {
  return dst.shape() == src.shape() && dst.strides() == src.strides() && dst.is_dense() &&
         is_vector_aligned(dst.data()) && is_vector_aligned(src.data());
}

}  // namespace

void convert(const Tensor& dst, const Tensor& src) {
  const DeviceGuard guard(dst.device());
  if (is_packed(dst, src)) {
    const DType from = src.dtype(), to = dst.dtype();
    if (from == kF32 && to == kF16) return convert_packed<float, F16Bits>(dst, src);
    if (from == kF32 && to == kBF16) return convert_packed<float, BF16Bits>(dst, src);
    if (from == kF16 && to == kF32) return convert_packed<F16Bits, float>(dst, src);
    if (from == kBF16 && to == kF32) return convert_packed<BF16Bits, float>(dst, src);
    if (from == kF16 && to == kBF16) return convert_packed<F16Bits, BF16Bits>(dst, src);
    if (from == kBF16 && to == kF16) return convert_packed<BF16Bits, F16Bits>(dst, src);
  }
  const Operand in[] = {src};
  run_pointwise<ResultKind::kPromoted, Arity::kUnary>("cast", Identity{}, dst,
                                                      compute_dtype(src.dtype()), in);
}

}  // namespace lockstep::kernels::cuda
