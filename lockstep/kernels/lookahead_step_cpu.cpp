#include "lockstep/core/config.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/lookahead_step.h"
#include "lockstep/kernels/lookahead_step_cuda.h"
#include "lockstep/kernels/segment_check.h"
#include "lockstep/kernels/segment_loop.h"

namespace lockstep::kernels {
namespace {

template <class T>
[[gnu::always_inline]] inline void sync_loop(T* __restrict fast, StateOf<T>* __restrict slow,
                                             std::int64_t n, StateOf<T> alpha) {
  for (std::int64_t i = 0; i < n; ++i) {
    slow[i] += alpha * (load_value(fast[i]) - slow[i]);
    store_value(fast[i], slow[i]);
  }
}

template <class T>
[[gnu::always_inline]] inline void start_loop(const T* __restrict fast, StateOf<T>* __restrict slow,
                                              std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) slow[i] = load_value(fast[i]);
}

std::vector<SegmentChunk> chunks_of(std::span<const LookaheadSegment> segments) {
  return cut_segments(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i) {
    return segments[static_cast<std::size_t>(i)].fast.numel();
  });
}

void check(std::span<const LookaheadSegment> segments) {
  for (const LookaheadSegment& s : segments) {
    LOCKSTEP_CHECK(s.fast.defined() && is_floating(s.fast.dtype()) && s.fast.is_dense(),
                   "lookahead_step: a parameter must be dense and floating");
    check_segment_device("lookahead_step", s.fast, segments.front().fast);
    check_segment_state("lookahead_step", s.fast, s.slow, "slow weights");
  }
}

void step_on_cpu(std::span<const LookaheadSegment> segments, double alpha, Isa isa) {
  for_each_chunk(chunks_of(segments), [&](std::int64_t, const SegmentChunk& chunk) {
    const LookaheadSegment& s = segments[static_cast<std::size_t>(chunk.segment)];
    const std::int64_t n = chunk.end - chunk.begin;
    visit_floating(s.fast.dtype(), "lookahead_step", [&]<class T>() {
      T* fast = s.fast.data<T>() + chunk.begin;
      StateOf<T>* slow = s.slow.data<StateOf<T>>() + chunk.begin;
      const auto a = static_cast<StateOf<T>>(alpha);
      call_at(
          isa, [&]() __attribute__((always_inline)) { sync_loop<T>(fast, slow, n, a); });
    });
  });
}

void start_on_cpu(std::span<const LookaheadSegment> segments) {
  for_each_chunk(chunks_of(segments), [&](std::int64_t, const SegmentChunk& chunk) {
    const LookaheadSegment& s = segments[static_cast<std::size_t>(chunk.segment)];
    visit_floating(s.fast.dtype(), "lookahead_start", [&]<class T>() {
      start_loop<T>(s.fast.data<T>() + chunk.begin, s.slow.data<StateOf<T>>() + chunk.begin,
                    chunk.end - chunk.begin);
    });
  });
}

}  // namespace

void lookahead_step(std::span<const LookaheadSegment> segments, double alpha, Isa isa) {
  check(segments);
  if (kHasCuda && is_on_cuda(segments, &LookaheadSegment::fast)) {
    if constexpr (kHasCuda) cuda::lookahead_step(segments, alpha);
  } else {
    step_on_cpu(segments, alpha, isa);
  }
  for (const LookaheadSegment& s : segments) {
    s.fast.bump_version();
    s.slow.bump_version();
  }
}

void lookahead_start(std::span<const LookaheadSegment> segments) {
  check(segments);
  if (kHasCuda && is_on_cuda(segments, &LookaheadSegment::fast)) {
    if constexpr (kHasCuda) cuda::lookahead_start(segments);
  } else {
    start_on_cpu(segments);
  }
  for (const LookaheadSegment& s : segments) s.slow.bump_version();
}

}  // namespace lockstep::kernels
