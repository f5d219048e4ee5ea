#include "lockstep/kernels/lookahead_step_cuda.h"

#include "lockstep/kernels/segment_pack.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct LookaheadPart {
  T* fast;
  Compute<T>* slow;
  std::uint64_t n;
};

template <class T>
__global__ void sync_kernel(SegmentPack<LookaheadPart<T>> pack, Compute<T> alpha) {
  using C = Compute<T>;
  std::uint64_t begin;
  const LookaheadPart<T>& part = segment_of_block(pack, begin);
  if (begin >= part.n) return;
  C fast[4], slow[4];
  load_four(part.fast, begin, part.n, fast);
  load_four(part.slow, begin, part.n, slow);
  for (int i = 0; i < 4; ++i) slow[i] += alpha * (fast[i] - slow[i]);
  store_four(part.slow, begin, part.n, slow);
  store_four(part.fast, begin, part.n, slow);
}

template <class T>
__global__ void start_kernel(SegmentPack<LookaheadPart<T>> pack) {
  std::uint64_t begin;
  const LookaheadPart<T>& part = segment_of_block(pack, begin);
  if (begin >= part.n) return;
  Compute<T> fast[4];
  load_four(part.fast, begin, part.n, fast);
  store_four(part.slow, begin, part.n, fast);
}

template <class T>
std::vector<LookaheadPart<T>> parts_of(std::span<const LookaheadSegment> segments, DType dtype) {
  std::vector<LookaheadPart<T>> parts;
  for (const LookaheadSegment& s : segments)
    if (s.fast.dtype() == dtype)
      parts.push_back({elements<T>(s.fast), elements<Compute<T>>(s.slow),
                       static_cast<std::uint64_t>(s.fast.numel())});
  return parts;
}

// launch(parts' pack, blocks) for each dtype among the segments.
template <class Run>
void for_each_dtype(std::span<const LookaheadSegment> segments, Run&& run) {
  if (segments.empty()) return;
  const DeviceGuard guard(segments.front().fast.device());
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    visit_device_floating(dtype, "lookahead_step", [&]<class T>() {
      for_each_pack(parts_of<T>(segments, dtype),
                    [&](const SegmentPack<LookaheadPart<T>>& pack, unsigned blocks) {
                      run.template operator()<T>(
                          pack, blocks, current_native_stream(segments.front().fast.device()));
                    });
    });
}

}  // namespace

void lookahead_step(std::span<const LookaheadSegment> segments, double alpha) {
  for_each_dtype(segments, [&]<class T>(const SegmentPack<LookaheadPart<T>>& pack, unsigned blocks,
                                        cudaStream_t stream) {
    lockstep::cuda::launch("lookahead_step", stream, blocks, kPackBlock, 0, sync_kernel<T>, pack,
                           static_cast<Compute<T>>(alpha));
  });
}

void lookahead_start(std::span<const LookaheadSegment> segments) {
  for_each_dtype(segments, [&]<class T>(const SegmentPack<LookaheadPart<T>>& pack, unsigned blocks,
                                        cudaStream_t stream) {
    lockstep::cuda::launch("lookahead_start", stream, blocks, kPackBlock, 0, start_kernel<T>, pack);
  });
}

}  // namespace lockstep::kernels::cuda
