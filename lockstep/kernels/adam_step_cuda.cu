#include "lockstep/kernels/adam_step_cuda.h"

#include "lockstep/kernels/adam_math.h"
#include "lockstep/kernels/segment_pack.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct AdamPart {
  T* param;
  const T* grad;
  Compute<T>*m, *v, *vmax;
  std::uint64_t n;
  AdamScalars<Compute<T>> scalars;
};

template <class T, bool kL2, bool kAmsgrad>
__global__ void adam_kernel(SegmentPack<AdamPart<T>> pack) {
  using C = Compute<T>;
  std::uint64_t begin;
  const AdamPart<T>& part = segment_of_block(pack, begin);
  if (begin >= part.n) return;
  C w[4], g[4], m[4], v[4], vmax[4];
  load_four(part.param, begin, part.n, w);
  load_four(part.grad, begin, part.n, g);
  load_four(part.m, begin, part.n, m);
  load_four(part.v, begin, part.n, v);
  if constexpr (kAmsgrad) load_four(part.vmax, begin, part.n, vmax);
  for (int i = 0; i < 4; ++i)
    w[i] = adam_element<kL2, kAmsgrad>(w[i], g[i], &m[i], &v[i], &vmax[i], part.scalars);
  store_four(part.param, begin, part.n, w);
  store_four(part.m, begin, part.n, m);
  store_four(part.v, begin, part.n, v);
  if constexpr (kAmsgrad) store_four(part.vmax, begin, part.n, vmax);
}

template <class T, bool kL2, bool kAmsgrad>
void run(const std::vector<AdamPart<T>>& parts, Device device) {
  for_each_pack(parts, [&](const SegmentPack<AdamPart<T>>& pack, unsigned blocks) {
    lockstep::cuda::launch("adam_step", current_native_stream(device), blocks, kPackBlock, 0,
                           adam_kernel<T, kL2, kAmsgrad>, pack);
  });
}

template <class T>
void run(std::span<const AdamSegment> segments, DType dtype, const AdamConfig& config) {
  using C = Compute<T>;
  std::vector<AdamPart<T>> parts;
  Device device;
  for (const AdamSegment& s : segments) {
    if (s.param.dtype() != dtype) continue;
    device = s.param.device();
    parts.push_back({elements<T>(s.param), elements<T>(s.grad), elements<C>(s.exp_avg),
                     elements<C>(s.exp_avg_sq),
                     config.amsgrad ? elements<C>(s.max_exp_avg_sq) : nullptr,
                     static_cast<std::uint64_t>(s.param.numel()), adam_scalars<C>(config, s.step)});
  }
  const bool l2 = !config.decoupled && config.weight_decay != 0;
  if (l2 && config.amsgrad) return run<T, true, true>(parts, device);
  if (l2) return run<T, true, false>(parts, device);
  if (config.amsgrad) return run<T, false, true>(parts, device);
  run<T, false, false>(parts, device);
}

}  // namespace

void adam_step(std::span<const AdamSegment> segments, const AdamConfig& config) {
  if (segments.empty()) return;
  const DeviceGuard guard(segments.front().param.device());
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    visit_device_floating(dtype, "adam_step", [&]<class T>() { run<T>(segments, dtype, config); });
}

}  // namespace lockstep::kernels::cuda
