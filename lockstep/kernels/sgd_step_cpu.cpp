#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/segment_check.h"
#include "lockstep/kernels/segment_loop.h"
#include "lockstep/kernels/sgd_step.h"

namespace lockstep::kernels {
namespace {

enum class Velocity { kNone, kPlain, kNesterov };

template <class S>
struct SgdScalars {
  S lr, momentum, keep, fresh, weight_decay, grad_scale;  // v = keep * v + fresh * g
};

template <class T, Velocity kVelocity, bool kDecay>
[[gnu::always_inline]] inline void sgd_loop(T* __restrict p, const T* __restrict grad,
                                            StateOf<T>* __restrict v, std::int64_t n,
                                            SgdScalars<StateOf<T>> c) {
  using S = StateOf<T>;
  for (std::int64_t i = 0; i < n; ++i) {
    const S w = load_value(p[i]);
    S g = load_value(grad[i]) * c.grad_scale;
    if constexpr (kDecay) g += c.weight_decay * w;
    if constexpr (kVelocity != Velocity::kNone) {
      const S velocity = c.keep * v[i] + c.fresh * g;
      v[i] = velocity;
      g = kVelocity == Velocity::kNesterov ? g + c.momentum * velocity : velocity;
    }
    store_value(p[i], w - c.lr * g);
  }
}

template <class T, Velocity kVelocity, bool kDecay>
void sgd_chunk(const SgdSegment& segment, const SegmentChunk& chunk, const SgdConfig& config,
               Isa isa) {
  using S = StateOf<T>;
  T* p = segment.param.data<T>() + chunk.begin;
  const T* g = segment.grad.data<T>() + chunk.begin;
  S* v = kVelocity == Velocity::kNone ? nullptr : segment.momentum.data<S>() + chunk.begin;
  const SgdScalars<S> c{static_cast<S>(config.lr),
                        static_cast<S>(config.momentum),
                        segment.first ? S(0) : static_cast<S>(config.momentum),
                        segment.first ? S(1) : static_cast<S>(1 - config.dampening),
                        static_cast<S>(config.weight_decay),
                        static_cast<S>(config.maximize ? -config.grad_scale : config.grad_scale)};
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

}  // namespace

void sgd_step(std::span<const SgdSegment> segments, const SgdConfig& config, Isa isa) {
  for (const SgdSegment& s : segments) {
    check_segment_grad("sgd_step", s.param, s.grad);
    if (config.momentum != 0) check_segment_state("sgd_step", s.param, s.momentum, "momentum");
  }
  const auto chunks = cut_segments(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i) {
    return segments[static_cast<std::size_t>(i)].param.numel();
  });
  for_each_chunk(chunks, [&](std::int64_t, const SegmentChunk& chunk) {
    const SgdSegment& s = segments[static_cast<std::size_t>(chunk.segment)];
    visit_floating(s.param.dtype(), "sgd_step", [&]<class T>() {
      if (config.momentum == 0)
        sgd_chunk<T, Velocity::kNone>(s, chunk, config, isa);
      else if (config.nesterov)
        sgd_chunk<T, Velocity::kNesterov>(s, chunk, config, isa);
      else
        sgd_chunk<T, Velocity::kPlain>(s, chunk, config, isa);
    });
  });
  for (const SgdSegment& s : segments) {
    s.param.bump_version();
    s.momentum.bump_version();
  }
}

}  // namespace lockstep::kernels
