// Matrices of any strides by gemm_tile.cuh. Long sums of few results are split: the parts are added
// up in one order.
#include "lockstep/core/device_guard.h"
#include "lockstep/kernels/gemm_cuda.h"
#include "lockstep/kernels/gemm_operand.cuh"
#include "lockstep/kernels/gemm_split.cuh"

namespace lockstep::kernels::cuda {
namespace {

bool is_aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

// The operand as (outer, k): a is (m, k), b (k, n) and so has its outer axis last.
template <class T, bool along_k>
StridedOperand<T, along_k> operand_of(const Tensor& t, bool is_b) {
  const int first = t.dim() - 2, outer = is_b ? first + 1 : first, k = is_b ? first : first + 1;
  StridedOperand<T, along_k> out;
  out.data = elements<T>(t);
  out.outer = static_cast<std::uint64_t>(t.size(outer));
  out.k = static_cast<std::uint64_t>(t.size(k));
  out.outer_stride = t.strides()[outer];
  out.k_stride = t.strides()[k];
  out.batch_stride = first > 0 ? t.strides()[0] : 0;
  const std::int64_t along = along_k ? out.k_stride : out.outer_stride;
  const std::int64_t across = along_k ? out.outer_stride : out.k_stride;
  out.vectors = along == 1 && across % 4 == 0 && out.batch_stride % 4 == 0 &&
                is_aligned(out.data, 4 * sizeof(T));
  return out;
}

bool lies_along_k(const Tensor& t, bool is_b) {
  const int last = t.dim() - 1;
  const std::int64_t outer = t.strides()[is_b ? last : last - 1];
  const std::int64_t k = t.strides()[is_b ? last - 1 : last];
  return k == 1 || outer != 1;
}

template <class T>
MatrixOut<T> out_of(const GemmCall& call) {
  const Tensor& c = call.c;
  const int first = c.dim() - 2;
  MatrixOut<T> out;
  out.data = elements<T>(c);
  out.rows = static_cast<std::uint64_t>(c.size(first));
  out.columns = static_cast<std::uint64_t>(c.size(first + 1));
  out.row_stride = static_cast<std::uint64_t>(c.strides()[first]);
  out.batch_stride = first > 0 ? static_cast<std::uint64_t>(c.strides()[0]) : 0;
  out.bias = call.bias.defined() ? elements<T>(call.bias) : nullptr;
  out.accumulate = call.accumulate;
  out.relu = call.relu;
  out.vectors =
      out.row_stride % 4 == 0 && out.batch_stride % 4 == 0 && is_aligned(out.data, 4 * sizeof(T));
  return out;
}

template <class T>
void run(const GemmCall& call) {
  const unsigned batches = call.c.dim() == 3 ? static_cast<unsigned>(call.c.size(0)) : 1;
  const auto with = [&]<bool a_along_k, bool b_along_k>() {
    multiply_tiles<T>("gemm", operand_of<T, a_along_k>(call.a, false),
                      operand_of<T, b_along_k>(call.b, true), out_of<T>(call), batches,
                      call.c.device());
  };
  const bool a = lies_along_k(call.a, false), b = lies_along_k(call.b, true);
  if (a && b) return with.template operator()<true, true>();
  if (a) return with.template operator()<true, false>();
  if (b) return with.template operator()<false, true>();
  with.template operator()<false, false>();
}

}  // namespace

void gemm_tiled(const GemmCall& call) {
  const DeviceGuard guard(call.c.device());
  constexpr std::int64_t kMostBatches = 65535;  // of one launch
  if (call.c.dim() == 3 && call.c.size(0) > kMostBatches) {
    for (std::int64_t first = 0; first < call.c.size(0); first += kMostBatches) {
      const std::int64_t end = std::min(call.c.size(0), first + kMostBatches);
      GemmCall part = call;
      for (Tensor* t : {&part.a, &part.b, &part.c}) *t = t->slice(0, first, end);
      gemm_tiled(part);
    }
    return;
  }
  visit_device_floating(call.c.dtype(), "gemm", [&]<class T>() { run<T>(call); });
}

}  // namespace lockstep::kernels::cuda
