#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/segment_check.h"
#include "lockstep/kernels/segment_loop.h"
#include "lockstep/kernels/sgd_math.h"
#include "lockstep/kernels/sgd_step.h"
#include "lockstep/kernels/sgd_step_cuda.h"

namespace lockstep::kernels {
namespace {

template <class T, Velocity kVelocity, bool kDecay>
[[gnu::always_inline]] inline void sgd_loop(T* __restrict p, const T* __restrict grad,
                                            StateOf<T>* __restrict v, std::int64_t n,
                                            SgdScalars<StateOf<T>> c) {
  using S = StateOf<T>;
  for (std::int64_t i = 0; i < n; ++i) {
    S* const velocity = kVelocity == Velocity::kNone ? nullptr : v + i;
    const S w = sgd_element<kVelocity, kDecay>(load_value(p[i]), load_value(grad[i]), velocity, c);
    store_value(p[i], w);
  }
}

template <class T, Velocity kVelocity, bool kDecay>
void sgd_chunk(const SgdSegment& segment, const SegmentChunk& chunk, const SgdConfig& config,
               Isa isa) {
  using S = StateOf<T>;
  T* p = segment.param.data<T>() + chunk.begin;
  const T* g = segment.grad.data<T>() + chunk.begin;
  S* v = kVelocity == Velocity::kNone ? nullptr : segment.momentum.data<S>() + chunk.begin;
  const SgdScalars<S> c = sgd_scalars<S>(config, segment.first);
  const std::int64_t n = chunk.end - chunk.begin;
  call_at(
      isa, [&]() __attribute__((always_inline)) { sgd_loop<T, kVelocity, kDecay>(p, g, v, n, c); });
}

template <class T, Velocity kVelocity>
void sgd_chunk(const SgdSegment& segment, const SegmentChunk& chunk, const SgdConfig& config,
               Isa isa) {
  if (config.weight_decay != 0)
    sgd_chunk<T, kVelocity, true>(segment, chunk, config, isa);
  else
    sgd_chunk<T, kVelocity, false>(segment, chunk, config, isa);
}

void step_on_cpu(std::span<const SgdSegment> segments, const SgdConfig& config, Isa isa) {
  const auto chunks = cut_segments(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i) {
    return segments[static_cast<std::size_t>(i)].param.numel();
  });
  for_each_chunk(chunks, [&](std::int64_t, const SegmentChunk& chunk) {
    const SgdSegment& s = segments[static_cast<std::size_t>(chunk.segment)];
    visit_floating(s.param.dtype(), "sgd_step", [&]<class T>() {
      switch (velocity_of(config)) {
        case Velocity::kNone:
          return sgd_chunk<T, Velocity::kNone>(s, chunk, config, isa);
        case Velocity::kPlain:
          return sgd_chunk<T, Velocity::kPlain>(s, chunk, config, isa);
        case Velocity::kNesterov:
          return sgd_chunk<T, Velocity::kNesterov>(s, chunk, config, isa);
      }
    });
  });
}

}  // namespace

void sgd_step(std::span<const SgdSegment> segments, const SgdConfig& config, Isa isa) {
  for (const SgdSegment& s : segments) {
    check_segment_device("sgd_step", s.param, segments.front().param);
    check_segment_grad("sgd_step", s.param, s.grad);
    if (config.momentum != 0) check_segment_state("sgd_step", s.param, s.momentum, "momentum");
  }
  if (kHasCuda && is_on_cuda(segments, &SgdSegment::param)) {
    if constexpr (kHasCuda) cuda::sgd_step(segments, config);
  } else {
    step_on_cpu(segments, config, isa);
  }
  for (const SgdSegment& s : segments) {
    s.param.bump_version();
    s.momentum.bump_version();
  }
}

}  // namespace lockstep::kernels
