#include "lockstep/kernels/sgd_step_cuda.h"

#include "lockstep/kernels/segment_pack.cuh"
#include "lockstep/kernels/sgd_math.h"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct SgdPart {
  T* param;
  const T* grad;
  Compute<T>* velocity;
  std::uint64_t n;
  SgdScalars<Compute<T>> scalars;
};

template <class T, Velocity kVelocity, bool kDecay>
__global__ void sgd_kernel(SegmentPack<SgdPart<T>> pack) {
  using C = Compute<T>;
  std::uint64_t begin;
  const SgdPart<T>& part = segment_of_block(pack, begin);
  if (begin >= part.n) return;
  C w[4], g[4], v[4];
  load_four(part.param, begin, part.n, w);
  load_four(part.grad, begin, part.n, g);
  if constexpr (kVelocity != Velocity::kNone) load_four(part.velocity, begin, part.n, v);
  for (int i = 0; i < 4; ++i)
    w[i] = sgd_element<kVelocity, kDecay>(w[i], g[i], &v[i], part.scalars);
  store_four(part.param, begin, part.n, w);
  if constexpr (kVelocity != Velocity::kNone) store_four(part.velocity, begin, part.n, v);
}

template <class T, Velocity kVelocity, bool kDecay>
void run(const std::vector<SgdPart<T>>& parts, Device device) {
  for_each_pack(parts, [&](const SegmentPack<SgdPart<T>>& pack, unsigned blocks) {
    lockstep::cuda::launch("sgd_step", current_native_stream(device), blocks, kPackBlock, 0,
                           sgd_kernel<T, kVelocity, kDecay>, pack);
  });
}

template <class T, Velocity kVelocity>
void run(const std::vector<SgdPart<T>>& parts, Device device, bool decay) {
  if (decay)
    run<T, kVelocity, true>(parts, device);
  else
    run<T, kVelocity, false>(parts, device);
}

template <class T>
void run(std::span<const SgdSegment> segments, DType dtype, const SgdConfig& config) {
  using C = Compute<T>;
  std::vector<SgdPart<T>> parts;
  Device device;
  for (const SgdSegment& s : segments) {
    if (s.param.dtype() != dtype) continue;
    device = s.param.device();
    parts.push_back({elements<T>(s.param), elements<T>(s.grad),
                     config.momentum == 0 ? nullptr : elements<C>(s.momentum),
                     static_cast<std::uint64_t>(s.param.numel()), sgd_scalars<C>(config, s.first)});
  }
  const bool decay = config.weight_decay != 0;
  switch (velocity_of(config)) {
    case Velocity::kNone:
      return run<T, Velocity::kNone>(parts, device, decay);
    case Velocity::kPlain:
      return run<T, Velocity::kPlain>(parts, device, decay);
    case Velocity::kNesterov:
      return run<T, Velocity::kNesterov>(parts, device, decay);
  }
}

}  // namespace

void sgd_step(std::span<const SgdSegment> segments, const SgdConfig& config) {
  if (segments.empty()) return;
  const DeviceGuard guard(segments.front().param.device());
  for (const DType dtype : {kF32, kF64, kF16, kBF16})
    visit_device_floating(dtype, "sgd_step", [&]<class T>() { run<T>(segments, dtype, config); });
}

}  // namespace lockstep::kernels::cuda
