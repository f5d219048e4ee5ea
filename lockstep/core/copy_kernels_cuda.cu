// One thread per element, in the order of the destination: its stores lie side by side.
#include "lockstep/core/copy_kernels_cuda.h"
#include "lockstep/core/error.h"
#include "lockstep/core/kernel_launch.cuh"

namespace lockstep::cuda {
namespace {

// `Index` is 32 bits wherever that holds all positions: division by it costs a quarter.
template <class Unit, class Index>
__global__ void copy_strided_kernel(CopyPlan plan, Index n, Unit* dst, const Unit* src) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    Index rest = i;
    std::int64_t to = 0, from = 0;
    for (int axis = plan.rank - 1; axis > 0; --axis) {
      const Index size = static_cast<Index>(plan.size[axis]);
      const Index next = rest / size;
      const std::int64_t at = rest - next * size;
      to += at * plan.dst[axis];
      from += at * plan.src[axis];
      rest = next;
    }
    if (plan.rank > 0) {
      to += static_cast<std::int64_t>(rest) * plan.dst[0];
      from += static_cast<std::int64_t>(rest) * plan.src[0];
    }
    dst[to] = src[from];
  }
}

template <class Unit>
__global__ void fill_strided_kernel(CopyPlan plan, std::uint64_t n, Unit* dst, Unit value) {
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step) {
    std::uint64_t rest = i;
    std::int64_t to = 0;
    for (int axis = plan.rank - 1; axis >= 0; --axis) {
      const std::uint64_t size = static_cast<std::uint64_t>(plan.size[axis]);
      to += static_cast<std::int64_t>(rest % size) * plan.dst[axis];
      rest /= size;
    }
    dst[to] = value;
  }
}

std::int64_t count(const CopyPlan& plan) {
  std::int64_t n = 1;
  for (int i = 0; i < plan.rank; ++i) n *= plan.size[i];
  return n;
}

constexpr std::int64_t kMostBlocks = 1 << 16;
constexpr std::int64_t kHalfOf32Bits = std::int64_t{1} << 31;

template <class Unit>
void copy_units(const CopyPlan& plan, void* dst, const void* src, cudaStream_t stream) {
  const std::int64_t n = count(plan);
  const unsigned grid = grid_for(n, kBlockThreads, kMostBlocks);
  auto* to = static_cast<Unit*>(dst);
  const auto* from = static_cast<const Unit*>(src);
  // Below 2^31 the step past the end still fits 32 bits.
  if (n < kHalfOf32Bits)
    launch("copy_strided", stream, grid, kBlockThreads, 0, copy_strided_kernel<Unit, std::uint32_t>,
           plan, static_cast<std::uint32_t>(n), to, from);
  else
    launch("copy_strided", stream, grid, kBlockThreads, 0, copy_strided_kernel<Unit, std::uint64_t>,
           plan, static_cast<std::uint64_t>(n), to, from);
}

template <class Unit>
void fill_units(const CopyPlan& plan, void* dst, std::uint64_t bits, cudaStream_t stream) {
  const std::int64_t n = count(plan);
  launch("fill_strided", stream, grid_for(n, kBlockThreads, kMostBlocks), kBlockThreads, 0,
         fill_strided_kernel<Unit>, plan, static_cast<std::uint64_t>(n), static_cast<Unit*>(dst),
         static_cast<Unit>(bits));
}

}  // namespace

void copy_strided(const CopyPlan& plan, void* dst, const void* src, int unit, CUstream_st* stream) {
  switch (unit) {
    case 1:
      return copy_units<std::uint8_t>(plan, dst, src, stream);
    case 2:
      return copy_units<std::uint16_t>(plan, dst, src, stream);
    case 4:
      return copy_units<std::uint32_t>(plan, dst, src, stream);
    default:
      return copy_units<std::uint64_t>(plan, dst, src, stream);
  }
}

void fill_strided(const CopyPlan& plan, void* dst, std::uint64_t bits, int unit,
                  CUstream_st* stream) {
  switch (unit) {
    case 1:
      return fill_units<std::uint8_t>(plan, dst, bits, stream);
    case 2:
      return fill_units<std::uint16_t>(plan, dst, bits, stream);
    case 4:
      return fill_units<std::uint32_t>(plan, dst, bits, stream);
    default:
      return fill_units<std::uint64_t>(plan, dst, bits, stream);
  }
}

}  // namespace lockstep::cuda
