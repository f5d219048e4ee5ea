#include "lockstep/core/check.h"
#include "lockstep/core/dispatch.h"
#include "lockstep/kernels/lookahead_step.h"
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

std::vector<SegmentChunk> checked_chunks(std::span<const LookaheadSegment> segments) {
  for (const LookaheadSegment& s : segments) {
    LOCKSTEP_CHECK(s.fast.defined() && is_floating(s.fast.dtype()) && s.fast.is_dense(),
                   "lookahead_step: a parameter must be dense and floating");
    check_segment_state("lookahead_step", s.fast, s.slow, "slow weights");
  }
  return cut_segments(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i) {
    return segments[static_cast<std::size_t>(i)].fast.numel();
  });
}

}  // namespace

void lookahead_step(std::span<const LookaheadSegment> segments, double alpha, Isa isa) {
  for_each_chunk(checked_chunks(segments), [&](std::int64_t, const SegmentChunk& chunk) {
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
  for (const LookaheadSegment& s : segments) {
    s.fast.bump_version();
    s.slow.bump_version();
  }
}

void lookahead_start(std::span<const LookaheadSegment> segments) {
  for_each_chunk(checked_chunks(segments), [&](std::int64_t, const SegmentChunk& chunk) {
    const LookaheadSegment& s = segments[static_cast<std::size_t>(chunk.segment)];
    visit_floating(s.fast.dtype(), "lookahead_start", [&]<class T>() {
      start_loop<T>(s.fast.data<T>() + chunk.begin, s.slow.data<StateOf<T>>() + chunk.begin,
                    chunk.end - chunk.begin);
    });
  });
  for (const LookaheadSegment& s : segments) s.slow.bump_version();
}

}  // namespace lockstep::kernels
