#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/adam_math.h"
#include "lockstep/kernels/adam_step.h"
#include "lockstep/kernels/adam_step_cuda.h"
#include "lockstep/kernels/segment_check.h"
#include "lockstep/kernels/segment_loop.h"

namespace lockstep::kernels {
namespace {

template <class T, bool kL2, bool kAmsgrad>
[[gnu::always_inline]] inline void adam_loop(T* __restrict p, const T* __restrict grad,
                                             StateOf<T>* __restrict m, StateOf<T>* __restrict v,
                                             StateOf<T>* __restrict vmax, std::int64_t n,
                                             AdamScalars<StateOf<T>> c) {
  using S = StateOf<T>;
  for (std::int64_t i = 0; i < n; ++i) {
    const S w = adam_element<kL2, kAmsgrad>(load_value(p[i]), load_value(grad[i]), m + i, v + i,
                                            kAmsgrad ? vmax + i : nullptr, c);
    store_value(p[i], w);
  }
}

template <class T, bool kL2, bool kAmsgrad>
void adam_chunk(const AdamSegment& segment, const SegmentChunk& chunk, const AdamConfig& config,
                Isa isa) {
  using S = StateOf<T>;
  T* p = segment.param.data<T>() + chunk.begin;
  const T* g = segment.grad.data<T>() + chunk.begin;
  S* m = segment.exp_avg.data<S>() + chunk.begin;
  S* v = segment.exp_avg_sq.data<S>() + chunk.begin;
  S* vmax = kAmsgrad ? segment.max_exp_avg_sq.data<S>() + chunk.begin : nullptr;
  const std::int64_t n = chunk.end - chunk.begin;
  const AdamScalars<S> c = adam_scalars<S>(config, segment.step);
  call_at(
      isa, [&]() __attribute__((always_inline)) {
        adam_loop<T, kL2, kAmsgrad>(p, g, m, v, vmax, n, c);
      });
}

template <class T>
void adam_chunk(const AdamSegment& segment, const SegmentChunk& chunk, const AdamConfig& config,
                Isa isa) {
  const bool l2 = !config.decoupled && config.weight_decay != 0;
  if (l2 && config.amsgrad)
    adam_chunk<T, true, true>(segment, chunk, config, isa);
  else if (l2)
    adam_chunk<T, true, false>(segment, chunk, config, isa);
  else if (config.amsgrad)
    adam_chunk<T, false, true>(segment, chunk, config, isa);
  else
    adam_chunk<T, false, false>(segment, chunk, config, isa);
}

void step_on_cpu(std::span<const AdamSegment> segments, const AdamConfig& config, Isa isa) {
  const auto chunks = cut_segments(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i) {
    return segments[static_cast<std::size_t>(i)].param.numel();
  });
  for_each_chunk(chunks, [&](std::int64_t, const SegmentChunk& chunk) {
    const AdamSegment& s = segments[static_cast<std::size_t>(chunk.segment)];
    visit_floating(s.param.dtype(), "adam_step",
                   [&]<class T>() { adam_chunk<T>(s, chunk, config, isa); });
  });
}

}  // namespace

void adam_step(std::span<const AdamSegment> segments, const AdamConfig& config, Isa isa) {
  for (const AdamSegment& s : segments) {
    LOCKSTEP_CHECK(s.step >= 1, "adam_step: step {} given, steps count from 1", s.step);
    check_segment_device("adam_step", s.param, segments.front().param);
    check_segment_grad("adam_step", s.param, s.grad);
    check_segment_state("adam_step", s.param, s.exp_avg, "exp_avg");
    check_segment_state("adam_step", s.param, s.exp_avg_sq, "exp_avg_sq");
    if (config.amsgrad)
      check_segment_state("adam_step", s.param, s.max_exp_avg_sq, "max_exp_avg_sq");
  }
  if (kHasCuda && is_on_cuda(segments, &AdamSegment::param)) {
    if constexpr (kHasCuda) cuda::adam_step(segments, config);
  } else {
    step_on_cpu(segments, config, isa);
  }
  for (const AdamSegment& s : segments)
    for (const Tensor* t : {&s.param, &s.exp_avg, &s.exp_avg_sq, &s.max_exp_avg_sq})
      t->bump_version();
}

}  // namespace lockstep::kernels
